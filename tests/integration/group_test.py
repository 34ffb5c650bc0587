"""A synchronous group of real processes: members and master are killed and paused while it trains. Afterwards every record of
every epoch is committed once, and the weights of all members equal those of an undisturbed run, bit for bit. If members train with local
steps, the members of a run have equal bits, and two runs have nearly the same losses."""

import argparse
import glob
import json
import os
import random
import signal
import struct
import statistics
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import counter_job  # noqa: E402
import processes  # noqa: E402

WEIGHTS = 257
MINIBATCH, MINIBATCHES = 32, 8
# With local steps: the part by which the losses of two runs differ at most, in the epochs before the last one and in the last. The
# best weights have a loss of 0.25, the initial ones of 2.5.
TOLERANCES = (0.3, 0.05)
LEARNED = 0.27


class GroupJob(counter_job.CounterJob):
    """The counter job's data, trained by a group."""

    def __init__(self, arguments, *, members=3, fail_every=0, algorithm="", initial=0.5, backend=(), spec=None, **more):
        super().__init__(arguments, **more)
        self.spec = {"group": {"globalBatch": MINIBATCH * MINIBATCHES, "minMembers": 1, "silenceLimit": "1500ms"}} | (spec or {})
        self.ps = {"replicas": 0}
        self.worker = {"replicas": members}
        self.command = ["sh", "-c", 'exec "$0" "$@" --hang-while "hang-$MUSTER_NODE"', self.trainer]
        self.command += ["--slow-us", str(more.get("slow_us", 0)), "--slow-while", self.path(counter_job.SLOW), "--output",
                         self.path("weights"), "--fail-every", str(fail_every), "--algorithm", algorithm, "--initial", str(initial)]
        self.command += backend

    def write_job(self):
        super().write_job()
        with open(self.path("job.yaml"), encoding="utf-8") as file:
            text = file.read()
        with open(self.path("job.yaml"), "w", encoding="utf-8") as file:
            file.write(text.replace(", minibatchesPerShard: 4", ""))

    def weights(self):
        """{worker: (bytes of the weights, updates)}."""
        seen = {}
        for path in glob.glob(self.path("weights-*.bin")):
            with open(path, "rb") as file:
                data = file.read()
            seen[os.path.basename(path)] = (data[: 4 * WEIGHTS], struct.unpack("<q", data[4 * WEIGHTS :])[0])
        return seen

    def exported(self):
        """As weights() has it, of the newest checkpoint."""
        self.ask("export", "job.yaml", "--output-dir", "out")
        values = []
        for name in ("weights", "updates"):
            with open(self.path("out", name + ".npy"), "rb") as file:
                data = file.read()
            values.append(data[data.index(b"\n") + 1 :])
        return values[0], struct.unpack("<q", values[1])[0]

    def decisions(self, policy):
        """Those of the scaler's policy, oldest first."""
        said = subprocess.run([self.muster, "events", "job.yaml", "--output", "json"], cwd=self.folder, text=True,
                              capture_output=True, check=False, timeout=60).stdout
        events = [json.loads(line)["event"] for line in said.splitlines()]
        return [event for event in events if event and event["policy"] == policy and event["kind"] == "decision"]

    def pids(self, role):
        """{node: pid} of the role's processes; empty while the master cannot be asked."""
        status = self.status() or {"nodes": []}
        return {node["name"]: node["pid"] for node in status["nodes"] if node["role"] == role and node["state"] == "running"}


def train_with_losses(seed, disturb=None, check=None, prepare=None, epochs=2, **more):
    """The weights after a run, and the loss of each epoch. `prepare(job)` changes it before, `disturb(job, run)` does what it likes
    meanwhile, and `check(job)` looks at what the run left."""
    with GroupJob(options, seed=seed, records=6000, epochs=epochs, **more) as job:
        job.write_data(random.Random(seed))
        if prepare is not None:
            prepare(job)
        job.write_job()
        run = job.start()
        if disturb is not None:
            disturb(job, run)
        job.hurry()
        job.wait(run, 0)
        summary = job.summary()
        for dataset in summary["datasets"]:
            for epoch in dataset["epochs"]:
                if epoch["records_committed"] != epoch["records_expected"]:
                    raise AssertionError(f"{epoch['records_committed']} of {epoch['records_expected']} records are committed")
        if check is not None:
            check(job)
        weights = job.weights()
        final = set(weights.values())
        if len(final) != 1:
            raise AssertionError(f"members differ: {[(name, pair[1]) for name, pair in weights.items()]}")
        if not more.get("algorithm") and (exported := job.exported()) not in final:
            raise AssertionError(f"the export has another state: that after {exported[1]} updates")
        epochs = sorted(summary["datasets"][0]["epochs"], key=lambda epoch: epoch["epoch"])
        return final.pop(), [epoch["metrics"]["loss"] for epoch in epochs]


def train(*arguments, **more):
    return train_with_losses(*arguments, **more)[0]


def disturber(seed):
    """Kills and pauses members and the master."""
    def disturb(job, run):
        rng = random.Random(seed)
        for number in range(8):
            job.wait_progress(run, 0.05 + 0.1 * number)
            role = "master" if number % 4 == 3 else "worker"
            if pids := job.pids(role):
                name = rng.choice(sorted(pids))
                if rng.random() < 0.3:
                    processes.send(pids[name], signal.SIGSTOP)
                    time.sleep(rng.random() * 3)
                    processes.send(pids[name], signal.SIGCONT)
                else:
                    processes.send(pids[name], signal.SIGKILL)
                print(f"disturbed {name}", flush=True)
    return disturb


class GroupTest(unittest.TestCase):
    def test_kills_of_members_and_master_leave_no_trace(self):
        self.assertEqual(train(7, disturber(7), slow_us=40000), train(7))

    def test_the_status_shows_the_members(self):
        def look(job, run):
            seen = None
            while not (seen and seen["step"] > 0 and seen["members"] == 2 and seen["step_in_work"] is not None):
                self.assertIsNone(run.poll(), job.said())
                seen = (job.status() or {}).get("group")
            self.assertEqual((seen["global_batch"], seen["members_min"], seen["waits"]), (MINIBATCH * MINIBATCHES, 1, ""))
            members = [process for process in seen["processes"] if process["standing"] == "member"]
            self.assertEqual(sorted(member["rank"] for member in members), [0, 1])
            self.assertGreater(sum(member["share_minibatches"] for member in members), 0)

        train(6, look, members=2, slow_us=20000)

    def adds_the_same(self, *backend):
        def disturb(job, run):
            for name, share in (("worker-1", 0.2), ("worker-0", 0.5)):
                job.wait_progress(run, share)
                if pid := job.pids("worker").get(name):
                    processes.send(pid, signal.SIGKILL)
                    print(f"killed {name}", flush=True)

        self.assertEqual(train(5, disturb, backend=backend, slow_us=20000), train(5))

    def test_nccl_adds_the_same_sums(self):
        self.adds_the_same("--nccl", options.fake_gpu)

    def test_nccl_adds_gradients_of_the_gpu(self):
        self.adds_the_same("--nccl", options.fake_gpu, "--on-device", "true")

    def test_nccl_adds_gradients_of_the_gpu_of_one_member(self):
        self.assertEqual(train(4, members=1, backend=("--nccl", options.fake_gpu, "--on-device", "true")), train(4, members=1))

    def test_a_plugin_adds_the_same_sums(self):
        if not options.gloo_plugin:
            self.skipTest("Gloo (libgloo-dev) is missing")
        self.adds_the_same("--plugin", options.gloo_plugin)

    def test_failed_steps_leave_no_trace(self):
        failing = train(9, fail_every=97)
        self.assertEqual(failing, train(9))
        self.assertEqual(failing, train(9, fail_every=97, backend=("--nccl", options.fake_gpu, "--on-device", "true")))

    def test_the_number_of_members_does_not_matter(self):
        self.assertEqual(train(8, members=1), train(8, members=4))


    def test_members_that_die_at_every_failpoint_leave_no_trace(self):
        """Each acts once among all processes, in the middle of the job."""
        environment = os.environ | {"MUSTER_FAILPOINTS": "list", "MUSTER_MASTER": "127.0.0.1:1", "MUSTER_NODE": "none"}
        listed = subprocess.run([options.trainer], env=environment, check=True, capture_output=True, text=True, timeout=60).stdout
        names = {line.split()[0] for line in listed.splitlines() if line.startswith("group.")}
        self.assertGreaterEqual(len(names), 10)

        def action(name):
            """A process copies the state once, and captures come seldom."""
            return "crash@2" if name.endswith(("-vote", "-sum", "-apply")) else "crash"

        def arm(job):
            os.mkdir(job.path("acted"))
            job.worker["env"] = {"MUSTER_FAILPOINTS": ";".join(f"{name}={action(name)}" for name in sorted(names)),
                                 "MUSTER_FAILPOINTS_ONCE": job.path("acted")}

        def wait(job, run):
            end = time.monotonic() + 150
            while missing := names - set(os.listdir(job.path("acted"))):
                self.assertIsNone(run.poll(), f"{missing}\n{job.said()}")
                self.assertLess(time.monotonic(), end, f"not reached: {missing}\n{job.last_words()}")
                time.sleep(0.1)

        self.assertEqual(train(12, wait, prepare=arm, epochs=6, slow_us=100000), train(12, epochs=6))

    def test_a_drained_member_leaves_between_two_steps(self):
        def drain(job, run):
            job.wait_progress(run, 0.1)
            job.ask("drain", "job.yaml", "--node", "worker-1")
            members = None
            while members != ["worker-0", "worker-2"]:
                self.assertIsNone(run.poll(), job.said())
                group = (job.status() or {}).get("group") or {"processes": []}
                members = [p["worker"] for p in group["processes"] if p["standing"] == "member"]

        def check(job):
            summary = job.summary()
            self.assertEqual(summary["restarts"]["worker"], 0)
            self.assertEqual(sorted(job.weights()), ["weights-worker-0.bin", "weights-worker-2.bin"], "it has not the final state")

        self.assertEqual(train(11, drain, check=check, slow_us=100000), train(11))

    def test_a_hanging_member_is_started_again_and_the_others_are_left_alone(self):
        victim = "worker-1"

        def hang(job, run):
            job.wait_progress(run, 0.05)
            path = job.path("hang-" + victim)
            with open(path, "w", encoding="ascii"):
                pass
            seen = []
            for action in ("dump-stacks", "restart"):
                while action not in [event["action"] for event in seen]:
                    self.assertIsNone(run.poll(), job.said())
                    time.sleep(0.1)
                    seen = job.decisions("hang")
                # The next process of it is well.
                if os.path.exists(path):
                    os.remove(path)
            self.assertEqual({event["target"] for event in seen}, {victim})
            self.assertRegex(seen[0]["because"], r"worker-1 owes the group its part of step \d+ and has finished no minibatch")

        spec = {"scaler": {"hang": {"timeout": "10s", "firstTimeout": "10s"}}}
        self.assertEqual(train(10, hang, slow_us=20000, spec=spec), train(10))


class LocalStepsTest(unittest.TestCase):
    """Members that train alone in a step (muster/local_sgd.h)."""

    def compare(self, algorithm, seed, **disturbed):
        """A disturbed run learns what runs learn in which nobody dies."""
        more = {"algorithm": algorithm, "initial": 3}
        undisturbed = [train_with_losses(seed, **more) for _ in range(2)]
        state, losses = train_with_losses(seed, **more, **disturbed)
        print(f"{algorithm}: undisturbed {[known for _, known in undisturbed]}, disturbed {losses}", flush=True)
        for other, _ in undisturbed:
            self.assertEqual(state[1], other[1], "the runs have different numbers of steps")
        for epoch, loss in enumerate(losses):
            mean = statistics.mean(known[epoch] for _, known in undisturbed)
            self.assertAlmostEqual(loss, mean, delta=TOLERANCES[epoch + 1 == len(losses)] * mean)
        self.assertLess(losses[-1], LEARNED)

    def test_local_sgd_disturbed(self):
        self.compare("local-sgd", 11, disturb=disturber(11), slow_us=40000)

    def test_diloco_disturbed(self):
        self.compare("diloco", 12, disturb=disturber(12), slow_us=40000)

    def test_streaming_disturbed(self):
        self.compare("streaming", 13, disturb=disturber(13), slow_us=40000)

    def test_diloco_fails_steps(self):
        """Minibatches of a step that fails are in no weights, and neither is NaN."""
        self.compare("diloco", 14, fail_every=97)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="Example: group_test.py --muster build/dev/cli/muster --trainer build/dev/tests/integration/group_trainer "
               "--fake-gpu build/dev/tests/collectives/backends/libmuster_fake_gpu.so",
    )
    counter_job.add_arguments(parser)
    parser.add_argument("--fake-gpu", required=True, type=os.path.abspath, help="a library in place of NCCL and CUDA")
    parser.add_argument("--gloo-plugin", type=os.path.abspath, help="examples/gloo_plugin")
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
