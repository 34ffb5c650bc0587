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

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import closed_form  # noqa: E402
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

    def __init__(self, arguments, *, members=3, fail_every=0, algorithm="", initial=0.5, backend=(), spec=None, servers=0, **more):
        super().__init__(arguments, **more)
        self.spec = {"group": {"globalBatch": MINIBATCH * MINIBATCHES, "minMembers": 1, "silenceLimit": "1500ms"}} | (spec or {})
        self.ps = {"replicas": servers}
        self.worker = {"replicas": members}
        self.command = ["sh", "-c", 'exec "$0" "$@" --hang-while "hang-$MUSTER_NODE" --stay-away-while "away-$MUSTER_NODE"', self.trainer]
        self.command += ["--slow-us", str(more.get("slow_us", 0)), "--slow-while", self.path(counter_job.SLOW), "--output",
                         self.path("weights"), "--fail-every", str(fail_every), "--algorithm", algorithm, "--initial", str(initial)]
        self.command += ["--tables", "1" if servers else "0", *backend]

    def write_job(self):
        super().write_job()
        with open(self.path("job.yaml"), encoding="utf-8") as file:
            text = file.read()
        with open(self.path("job.yaml"), "w", encoding="utf-8") as file:
            file.write(text.replace(", minibatchesPerShard: 4", ""))

    def touch(self, name):
        with open(self.path(name), "w", encoding="ascii"):
            pass

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

    def wait_decisions(self, run, policy, *actions):
        """The policy's decisions when it has made these."""
        seen = []
        while set(actions) - {event["action"] for event in seen}:
            if run.poll() is not None:
                raise AssertionError(f"the run ended\n{self.said()}")
            time.sleep(0.1)
            seen = self.decisions(policy)
        return seen

    def group_processes(self):
        """What the status says of each process of the group, by name."""
        group = (self.status() or {}).get("group") or {"processes": []}
        return {process["worker"]: process for process in group["processes"]}

    def pids(self, role):
        """{node: pid} of the role's processes; empty while the master cannot be asked."""
        status = self.status() or {"nodes": []}
        return {node["name"]: node["pid"] for node in status["nodes"] if node["role"] == role and node["state"] == "running"}

    def first_pid(self, run, role):
        """Of the first process of the role, as soon as there is one."""
        while run.poll() is None:
            if pids := self.pids(role):
                return pids[min(pids)]
            time.sleep(0.05)
        raise AssertionError(f"the run has ended\n{self.last_words()}")


def train_with_losses(seed, disturb=None, check=None, prepare=None, epochs=2, **more):
    """The weights after a run, and the loss of each epoch. `prepare(job)` changes it before, `disturb(job, run)` does what it likes
    meanwhile (and returns another run if that goes on with the job), and `check(job)` looks at what the run left."""
    with GroupJob(options, seed=seed, records=6000, epochs=epochs, **more) as job:
        job.write_data(random.Random(seed))
        if prepare is not None:
            prepare(job)
        job.write_job()
        run = job.start()
        if disturb is not None:
            run = disturb(job, run) or run
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
        if more.get("servers"):
            differences, rows = closed_form.compare(job.paths, epochs, job.path("out", "tables"))
            if differences:
                raise AssertionError(f"{len(differences)} of {rows} rows differ: {differences[:5]}")
        epochs = sorted(summary["datasets"][0]["epochs"], key=lambda epoch: epoch["epoch"])
        return final.pop(), [epoch["metrics"]["loss"] for epoch in epochs]


def train(*arguments, **more):
    return train_with_losses(*arguments, **more)[0]


def disturber(seed, roles=("worker", "worker", "worker", "master")):
    """Kills and pauses processes of the roles, in turn."""
    def disturb(job, run):
        rng = random.Random(seed)
        for number in range(8):
            job.wait_progress(run, 0.05 + 0.1 * number)
            role = roles[number % len(roles)]
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

        # All workers of the job are there, so it does not wait for the six that it has not.
        spec = {"group": {"globalBatch": MINIBATCH * MINIBATCHES, "minMembers": 1, "maxMembers": 8, "joinWait": "1h", "silenceLimit": "1500ms"}}
        train(6, look, members=2, slow_us=20000, spec=spec)

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

    def test_many_buckets_leave_no_trace(self):
        """A bucket for each weight, of three types in turn, with kills; in the memory of a GPU, the sums have the same bits."""
        many = ("--buckets", str(WEIGHTS))
        undisturbed = train(14, backend=many)
        self.assertEqual(train(14, disturber(14), backend=many, slow_us=40000), undisturbed)
        self.assertEqual(train(14, backend=(*many, "--nccl", options.fake_gpu, "--on-device", "true")), undisturbed)

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


class HangTest(unittest.TestCase):
    """A process that hangs is found, wherever it does, and it alone is started again."""
    SPEC = {"scaler": {"hang": {"timeout": "10s", "firstTimeout": "10s"}}}

    def hangs(self, seed, hang, victim, because, **more):
        """`hang(job, run)` lets a process hang; `victim(job)` is its name once it is known. `because`: a pattern of the reason."""
        def disturb(job, run):
            hang(job, run)
            while (name := victim(job)) is None:
                self.assertIsNone(run.poll(), job.said())
            job.wait_decisions(run, "hang", "dump-stacks")
            # The next process of it is well.
            for path in glob.glob(job.path("hang-*")) + glob.glob(job.path("away-*")):
                os.remove(path)
            seen = job.wait_decisions(run, "hang", "restart")
            self.assertEqual({event["target"] for event in seen}, {name})
            self.assertRegex(seen[0]["because"], f"{name} {because}")

        # Slow enough that those who go on do not reach the end before.
        self.assertEqual(train(seed, disturb, slow_us=200000, spec=self.SPEC, **more), train(seed))

    def test_hang_in_the_loop(self):
        def hang(job, run):
            job.wait_progress(run, 0.05)
            job.touch("hang-worker-1")

        self.hangs(10, hang, lambda _: "worker-1", r"owes the group its part of step \d+ and has finished no minibatch")

    def test_hang_before_it_joins(self):
        self.hangs(15, lambda *_: None, lambda _: "worker-2", "runs, and has not joined the group: it has not called NextStep",
                   prepare=lambda job: job.touch("away-worker-2"))

    def arm(self, **actions):
        """Each acts in one process."""
        def prepare(job):
            os.mkdir(job.path("acted"))
            job.worker["env"] = {"MUSTER_FAILPOINTS": ";".join(f"group.{name.replace('_', '-')}={action}" for name, action in actions.items()),
                                 "MUSTER_FAILPOINTS_ONCE": job.path("acted")}
        return prepare

    def test_hang_in_a_sum(self):
        """All add, and the loop of one hangs. The others go on without it."""
        def victim(job):
            armed = os.listdir(job.path("acted"))
            here = set(job.group_processes())
            gone = [f"worker-{i}" for i in range(3) if f"worker-{i}" not in here]
            return gone[0] if armed and len(gone) == 1 else None

        self.hangs(16, lambda *_: None, victim, r"runs, and has not joined the group: it has not called NextStep, or hangs in it",
                   prepare=self.arm(in_sum="delay:600000ms@8"))

    def test_hang_of_a_learner(self):
        def kill(job, run):
            job.wait_progress(run, 0.05)
            processes.send(job.pids("worker")["worker-1"], signal.SIGKILL)

        self.hangs(17, kill, lambda _: "worker-1", "is to learn the state of the group, and has got nothing",
                   prepare=self.arm(before_copy="delay:600000ms"))


class MembershipTest(unittest.TestCase):
    """Many members, and one that comes and goes."""

    def test_many_members(self):
        members = 32
        spec = {"group": {"globalBatch": MINIBATCH * members, "minMembers": 2, "maxMembers": members, "silenceLimit": "10s"}}

        def train_many(count, disturb=None, **more):
            return train(18, disturb, members=count, epochs=6, spec=spec, prepare=lambda job: setattr(job, "silence", "20s"), **more)

        def wait(job, run, condition):
            while not condition(job.group_processes(), job.status() or {"nodes": []}):
                self.assertIsNone(run.poll(), job.said())

        def all_members(seen, _):
            return sum(process["standing"] == "member" for process in seen.values()) == members

        def nobody_starves(_, status):
            finished = [node["worker"]["times"]["minibatches_finished"] for node in status["nodes"] if node["role"] == "worker" and node["worker"]]
            return len(finished) == members and min(finished) > 0

        def disturb(job, run):
            job.wait_progress(run, 0.01)
            job.ask("scale", "job.yaml", "--workers", str(members))
            wait(job, run, all_members)
            for name in ("worker-0", "worker-17"):
                processes.send(job.pids("worker")[name], signal.SIGKILL)
                print(f"killed {name}", flush=True)
                wait(job, run, lambda seen, _, name=name: seen.get(name, {"standing": ""})["standing"] != "member")
            wait(job, run, all_members)
            wait(job, run, nobody_starves)

        self.assertEqual(train_many(members - 1, disturb, slow_us=300000), train_many(2))

    def test_members_join_although_the_others_apply_slowly(self):
        """A newcomer needs the sum of a step that the others are still applying."""
        def disturb(job, run):
            job.wait_progress(run, 0.1)
            old = job.pids("worker")["worker-1"]
            processes.send(old, signal.SIGKILL)
            # It has made a step as a member.
            finished = 0
            while not finished:
                self.assertIsNone(run.poll(), job.said())
                nodes = (job.status() or {"nodes": []})["nodes"]
                finished = sum(node["worker"]["times"]["minibatches_finished"] for node in nodes
                               if node["name"] == "worker-1" and node["pid"] not in (0, old) and node["worker"])

        slow = {"MUSTER_FAILPOINTS": "group.before-apply=delay:60ms"}
        self.assertEqual(train(19, disturb, slow_us=20000, worker_environment=slow), train(19))

    def test_a_member_that_dies_whenever_it_has_joined(self):
        victim = "worker-1"

        def kill_often(job, run):
            killed, steps = set(), []
            while len(killed) < 6:
                self.assertIsNone(run.poll(), job.said())
                pid = job.pids("worker").get(victim)
                status = job.status() or {}
                standings = {process["worker"]: process["standing"] for process in (status.get("group") or {"processes": []})["processes"]}
                if pid is None or pid in killed or standings.get(victim) != "member":
                    continue
                steps.append(status["group"]["step"])
                processes.send(pid, signal.SIGKILL)
                killed.add(pid)
            print(f"died at steps {steps}", flush=True)
            self.assertEqual(len(set(steps)), len(steps), "there are steps in between")

        self.assertEqual(train(19, kill_often, slow_us=100000, epochs=4), train(19, epochs=4))


class MemoryTest(unittest.TestCase):
    def test_members_killed_for_their_memory_get_more(self):
        limit = 100 << 20

        def prepare(job):
            job.silence = "60s"
            job.worker |= {"resources": {"limits": {"memory": limit}},
                           "env": {"LD_PRELOAD": options.hungry, "HUNGRY_FLAG": job.path("hungry"), "HUNGRY_MIB": "120"}}

        def take_memory(job, run):
            job.wait_progress(run, 0.05)
            job.touch("hungry")
            decisions = {}
            while len(decisions) < 3:
                decisions = {event["target"]: event for event in job.wait_decisions(run, "out-of-memory", "restart")}
            for event in decisions.values():
                self.assertEqual((event["action"], event["before"]["memory_bytes"]), ("restart", limit))
                self.assertGreaterEqual(event["after"]["memory_bytes"], limit * 3 // 2)

        self.assertEqual(train(20, take_memory, prepare=prepare, slow_us=300000), train(20))


class TablesTest(unittest.TestCase):
    """Members that also push to tables on parameter servers. train() compares the tables with the closed form."""

    def replays(self, job):
        """DONE steps were pushed again, because servers had lost them."""
        self.assertGreater(job.summary()["counters"]["replayed_shards"], 0)

    def test_tables_when_members_die(self):
        self.assertEqual(train(21, disturber(21), slow_us=40000, servers=2), train(21))

    def test_tables_when_servers_die(self):
        self.assertEqual(train(22, disturber(22, ["ps"]), check=self.replays, slow_us=40000, servers=2), train(22))

    def test_tables_when_anything_dies(self):
        self.assertEqual(train(23, disturber(23, ["ps", "worker", "master"]), slow_us=40000, servers=2), train(23))

    def test_tables_and_steps_that_fail(self):
        self.assertEqual(train(24, fail_every=97, servers=2), train(24))

    def test_tables_after_the_end_of_everything(self):
        """The next run begins from checkpoints of the group and snapshots of the servers, which are of different steps."""
        def kill(job, run):
            for share in (0.15, 0.35, 0.55):
                job.wait_progress(run, share)
                job.kill(run)
                run = job.start()
            return run

        self.assertEqual(train(25, kill, check=self.replays, slow_us=40000, servers=2), train(25))


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
        epilog="Example: group_test.py --muster build/dev/cli/muster --trainer build/dev/tests/integration/groups/group_trainer "
               "--fake-gpu build/dev/tests/collectives/backends/libmuster_fake_gpu.so",
    )
    counter_job.add_arguments(parser)
    parser.add_argument("--fake-gpu", required=True, type=os.path.abspath, help="a library in place of NCCL and CUDA")
    parser.add_argument("--gloo-plugin", type=os.path.abspath, help="examples/gloo_plugin")
    parser.add_argument("--hungry", type=os.path.abspath, help="the library that takes memory")
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
