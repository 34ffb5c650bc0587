#!/usr/bin/env python3
"""A real job is steered over REST, its scaler is killed meanwhile: orders are carried out and explained, nodes notice nothing.

Python's standard library only.
"""

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import counter_job
from counter_job import processes
from rest_client import Refused, RestClient

MIB = 1 << 20
NOBODY = 65534  # a user that owns nothing
options = None


def kernel_limit(pid):
    """What the kernel lets the process have of memory; None where it has no group of its own."""
    with open(f"/proc/{pid}/cgroup", encoding="ascii") as file:
        groups = dict(line.rstrip("\n").split(":", 2)[1:] for line in file)
    for path in (f"/sys/fs/cgroup/memory{groups.get('memory')}/memory.limit_in_bytes", f"/sys/fs/cgroup{groups.get('')}/memory.max"):
        if "/muster-" in path and os.path.exists(path):
            with open(path, encoding="ascii") as file:
                return int(file.read())
    return None


class RestTest(unittest.TestCase):
    def begin(self, job):
        """A job that trains, and about which only this test decides."""
        job.silence, job.failures_max = "60s", 1
        job.worker = {"minReplicas": 1, "maxReplicas": 3}
        job.spec = {"scaler": {"pausedPolicies": ["worker-count", "worker-straggler", "server-straggler"]}}
        run = job.begin(0.01)
        rest = RestClient(job.path("state"))
        job.wait_for(run, "every node to run",
                     lambda: all(n["state"] == "running" and n["pid"] for n in rest.nodes().values()))
        return run, rest

    def outcome(self, job, run, rest, event):
        """What came of an event."""

        def known():
            effects = rest.get(f"events/{event['id']}")["effects"]
            return next((effect for effect in effects if effect["kind"] == "outcome"), None)

        return job.wait_for(run, f"what came of {event}", known)

    def say(self, job, *arguments, code=0):
        result = subprocess.run([job.muster, *arguments], cwd=job.folder, text=True, capture_output=True, check=False, timeout=60)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout

    def stored_events(self, job):
        """The scaler's events after the run: numbered without gaps, and one outcome for every order that can be measured."""
        told = [json.loads(line) for line in self.say(job, "events", "job.yaml", "--output", "json").splitlines()]
        events = [event["event"] for event in told if event["source"] == "scaler"]
        self.assertEqual([event["id"] for event in events], list(range(1, len(events) + 1)))
        for order in (event for event in events if event["kind"] in ("action", "decision")):
            outcomes = [event for event in events if event["kind"] == "outcome" and event["cause_id"] == order["id"]]
            silent = order["action"] in ("pause-policy", "resume-policy", "dump-stacks", "retry-shards")
            self.assertEqual(len(outcomes), 0 if silent else 1, order)
        return events

    def refused(self, status, ask, *arguments, **body):
        with self.assertRaises(Refused) as raised:
            ask(*arguments, **body)
        self.assertEqual(raised.exception.status, status, raised.exception)
        return raised.exception.problem["detail"]

    def check_nodes(self, job, run, rest):
        """One is restarted, one gets another limit while it runs, one is drained."""
        before = rest.nodes()
        restart = rest.act("nodes/worker-1/restart", reason="looks stuck", only_start=before["worker-1"]["start"])
        self.assertEqual((restart["kind"], restart["target"], restart["because"]), ("action", "worker-1", "looks stuck"))
        after = job.wait_for(run, "another worker-1", lambda: (n := rest.node("worker-1")) and n["state"] == "running"
                              and n["pid"] not in (0, before["worker-1"]["pid"]) and n)
        self.assertEqual(after["start"], before["worker-1"]["start"] + 1)
        self.assertFalse(os.path.exists(f"/proc/{before['worker-1']['pid']}"))
        self.refused(409, rest.act, "nodes/worker-1/restart", only_start=before["worker-1"]["start"])
        self.assertIn("worker-9", self.refused(404, rest.act, "nodes/worker-9/restart"))
        self.refused(409, rest.act, "nodes/master/restart")

        resize = rest.act("nodes/ps-1/resize", memory_bytes=300 * MIB)
        self.assertEqual(resize["after"]["memory_bytes"], 300 * MIB)
        node = job.wait_for(run, "the new limit", lambda: (n := rest.node("ps-1"))["limits"]["memory_bytes"] == 300 * MIB and n)
        self.assertEqual((node["pid"], node["start"]), (before["ps-1"]["pid"], before["ps-1"]["start"]), "in place")
        if not rest.get("job")["limits_remark"]:
            job.wait_for(run, "the kernel's limit", lambda: kernel_limit(node["pid"]) == 300 * MIB)
        self.refused(422, rest.act, "nodes/ps-1/resize", memory_bytes=1)
        self.refused(409, rest.act, "nodes/ps-1/resize", memory_bytes=1 << 46)

        drain = rest.act("nodes/ps-0/drain")
        self.assertEqual(self.outcome(job, run, rest, drain)["verdict"], "helped")
        self.assertEqual(rest.node("ps-0")["drain"], "drained")
        self.assertEqual(rest.node("ps-0")["pid"], before["ps-0"]["pid"])
        return restart

    def check_workers(self, job, run, rest):
        """2, 3, 1."""

        def running():
            return [name for name, node in rest.nodes().items() if node["role"] == "worker" and node["state"] == "running"]

        rest.act("workers/scale", workers=3)
        job.wait_for(run, "three workers", lambda: len(running()) == 3)
        self.assertIn("1 to 3", self.refused(409, rest.act, "workers/scale", workers=4))
        rest.act("workers/scale", workers=1)
        job.wait_for(run, "one worker", lambda: running() == ["worker-0"])
        self.refused(409, rest.act, "nodes/worker-0/drain")

    def check_shards(self, job, run, rest):
        """One fails with its worker, and is tried again."""
        self.assertIn("no shard", self.refused(409, rest.act, "shards/retry"))
        victim = rest.node("worker-0")["pid"]
        with open(job.path("state", "run", "worker-0.slot"), "rb") as file:
            job.wait_for(run, "a shard in work", lambda: file.seek(16) and any(file.read(8)))
        self.assertTrue(processes.send(victim, signal.SIGABRT))
        failed = job.wait_for(run, "a failed shard", lambda: rest.get("shards?state=failed")["shards"])
        retry = rest.act("shards/retry", shards=[failed[0]["id"]])
        self.assertIn(failed[0]["id"], retry["because"])
        self.assertEqual(rest.get("shards?state=failed")["total"], len(failed) - 1)
        job.wait_for(run, "another worker-0", lambda: (n := rest.node("worker-0"))["state"] == "running" and n["pid"] != victim)

    def check_strangers(self, job):
        """Another user knows both addresses, and neither master nor scaler does anything for them."""
        if os.geteuid() != 0:
            print("SKIPPED: only root can ask as another user", flush=True)
            return
        with open(job.path("state", "run", "endpoint.json"), encoding="utf-8") as file:
            master = json.load(file)["master"]
        # The program may lie where that user cannot reach it, so they get a copy.
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)
            muster = shutil.copy(job.muster, os.path.join(folder, "muster"))
            for verb in (["status"], ["drain"], ["cancel"], ["shards", "--retry"]):
                asked = subprocess.run([muster, *verb, "--state-dir", folder, "--master", master], cwd="/", user=NOBODY, group=NOBODY,
                                       extra_groups=[], text=True, capture_output=True, check=False, timeout=60)
                self.assertEqual(asked.returncode, 5, asked.stdout + asked.stderr)
                self.assertIn("scaler/token", asked.stderr)

    def check_policies(self, job, run, rest):
        def paused():
            return {policy["name"] for policy in rest.get("policies")["policies"] if policy["paused"]}

        self.assertEqual(paused(), {"worker-count", "worker-straggler", "server-straggler"})
        pause = rest.act("policies/hang/pause", reason="a slow disk")
        self.assertIn("hang", paused())
        self.refused(409, rest.act, "policies/hang/pause")
        resume = rest.act("policies/hang/resume")
        self.assertNotIn("hang", paused())
        for event in (pause, resume):
            self.assertEqual(rest.get(f"events/{event['id']}")["effects"], [], "nothing could measure it")

    def test_orders(self):
        """Every action has its effect, and the weights are exact at the end."""
        with counter_job.CounterJob(options, seed=61, records=8000, epochs=2, slow_us=200000) as job:
            run, rest = self.begin(job)
            restart = self.check_nodes(job, run, rest)
            self.check_strangers(job)
            self.check_policies(job, run, rest)
            self.check_workers(job, run, rest)
            self.check_shards(job, run, rest)
            self.assertEqual(self.outcome(job, run, rest, restart)["verdict"], "helped")
            drain = rest.act("job/drain", reason="for the night")
            job.wait(run, 3)
            events = self.stored_events(job)
            self.assertEqual(events[drain["id"] - 1], drain)
            self.assertEqual({e["action"] for e in events if e["kind"] == "action"},
                             {"restart", "resize", "scale", "drain", "retry-shards", "pause-policy", "resume-policy"})
            job.finish(job.start())
            self.assertGreater(len(self.stored_events(job)), len(events), "another run continues to count")

    def test_scaler_killed(self):
        """It serves again at the same address with the same token; events go on, streams heal, no node notices."""
        with counter_job.CounterJob(options, seed=62, records=8000, epochs=2, slow_us=200000) as job:
            run, rest = self.begin(job)
            before = rest.nodes()
            pause = rest.act("policies/hang/pause")
            seen = []
            for event in rest.stream(after=0):
                seen.append(event)
                if event["id"] >= pause["id"]:
                    break
            stream = rest.stream(after=seen[-1]["id"])
            another = rest.act("policies/predicted-out-of-memory/pause")
            self.assertIn(another["id"], (event["id"] for event in stream), "events go on as they happen")
            self.assertTrue(processes.send(before["scaler"]["pid"], signal.SIGKILL))
            self.assertEqual([], list(stream), "it ends with the scaler")

            def answers():
                try:
                    return rest.nodes().get("scaler", before["scaler"])["pid"] != before["scaler"]["pid"]
                except (OSError, http.client.HTTPException, Refused):
                    return False

            job.wait_for(run, "the next scaler", answers)
            again = RestClient(job.path("state"))
            self.assertEqual((again.port, again.token), (rest.port, rest.token))
            after = rest.nodes()
            for name in before.keys() - {"scaler"}:
                for field in ("pid", "start", "restarts"):
                    self.assertEqual(after[name][field], before[name][field], name)
            self.assertTrue(next(p["paused"] for p in rest.get("policies")["policies"] if p["name"] == "hang"))
            resume = rest.act("policies/hang/resume", reason="enough")
            healed = []
            for event in rest.stream(after=seen[-1]["id"]):
                healed.append(event["id"])
                if event["id"] >= resume["id"]:
                    break
            self.assertEqual(healed, list(range(seen[-1]["id"] + 1, resume["id"] + 1)))

            self.assertIn("worker-1", self.say(job, "top", "job.yaml", "--once"))
            self.assertIn("resume-policy: enough", self.say(job, "events", "job.yaml", "--kind", "action"))
            self.assertIn("enough", self.say(job, "explain", str(resume["id"]), "job.yaml"))
            self.assertRegex(self.say(job, "policies", "job.yaml"), r"worker-count +paused")
            rest.act("job/cancel", reason="seen enough")
            job.wait(run, 4)
            self.stored_events(job)
            self.say(job, "top", "job.yaml", "--once", code=5)


def main():
    global options
    options, rest = counter_job.arguments(__doc__, "rest_test.py -k orders")
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
