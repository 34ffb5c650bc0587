#!/usr/bin/env python3
"""Servers and workers whose memory limits are too low are killed, started again with more, and the events say why; weights stay exact.

What takes the memory is hungry.cc, preloaded into them. Python's standard library only.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time
import unittest

import counter_job

MIB = 1 << 20
LIMIT = 100 * MIB
PATIENCE = 60  # seconds; only a failing test waits so long
NAMES = ["ps-0", "ps-1", "worker-0", "worker-1"]
# Where groups are there, but shall not be found.
HIDE_GROUPS = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "sh"]
options = None


def kernel_kills():
    """Processes that the kernel of this machine has killed for memory so far."""
    with open("/proc/vmstat", encoding="ascii") as file:
        return next((int(line.split()[1]) for line in file if line.startswith("oom_kill ")), None)


class OutOfMemoryTest(unittest.TestCase):
    def job(self, roles, mib, **resources):
        """A job in which processes of `roles` take so much as soon as begin() has seen it train."""
        job = counter_job.CounterJob(options, seed=51, records=8000, epochs=2, slow_us=200000)
        job.write_data(random.Random(51))
        job.silence = "60s"
        self.flag = job.path("hungry")
        hungry = {"LD_PRELOAD": options.hungry, "HUNGRY_FLAG": self.flag, "HUNGRY_MIB": str(mib)}
        more = {"resources": {"limits": {"memory": LIMIT}} | resources}
        job.ps = more | ({"env": hungry} if "ps" in roles else {})
        job.worker = more | ({"env": hungry} if "worker" in roles else {})
        job.write_job()
        return job

    def begin(self, job):
        run = job.start()
        job.wait_progress(run, 0.02)
        with open(self.flag, "w", encoding="ascii"):
            return run

    def remark(self, job):
        """Why the kernel does not hold the limits of a running job; empty: it does."""
        said = subprocess.run([job.muster, "top", "job.yaml", "--once", "--output", "json"], cwd=job.folder, text=True,
                              capture_output=True, check=True, timeout=60)
        return json.loads(said.stdout)["job"]["limits_remark"]

    def events(self, job):
        """Those of the scaler, by their numbers."""
        said = subprocess.run([job.muster, "events", "job.yaml", "--output", "json"], cwd=job.folder, text=True,
                              capture_output=True, check=False, timeout=60).stdout
        events = [json.loads(line) for line in said.splitlines()]
        return {event["event"]["id"]: event["event"] for event in events if event["source"] == "scaler"}

    def wait_for(self, job, run, what, condition):
        end = time.monotonic() + PATIENCE
        while not (found := condition()):
            self.assertIsNone(run.poll(), f"the run ended while waiting: {what}\n{job.last_words()}")
            self.assertLess(time.monotonic(), end, f"no result of the wait for: {what}\n{job.last_words()}\n{self.events(job)}")
            time.sleep(0.1)
        return found

    def decisions(self, events):
        return {e["target"]: e for e in events.values() if e["kind"] == "decision" and e["policy"] == "out-of-memory"}

    def outcomes(self, events):
        """Of the first decision about each node."""
        wanted = {decision["id"]: name for name, decision in self.decisions(events).items()}
        return {wanted[e["cause_id"]]: e for e in events.values() if e["kind"] == "outcome" and e["cause_id"] in wanted}

    def explain(self, job, number):
        return subprocess.run([job.muster, "explain", str(number), "job.yaml"], cwd=job.folder, text=True,
                              capture_output=True, check=True, timeout=60).stdout

    def expect_explained(self, job, killed_by):
        """Every node was killed once, got half as much again, and that helped."""
        events = self.events(job)
        self.assertEqual(sorted(events), list(range(1, len(events) + 1)))
        decisions, outcomes = self.decisions(events), self.outcomes(events)
        self.assertEqual(sorted(decisions), NAMES)
        for name, decision in decisions.items():
            cause = events[decision["cause_id"]]
            self.assertEqual((cause["kind"], cause["target"]), ("exit", name))
            self.assertIn(killed_by, cause["because"])
            self.assertEqual(decision["action"], "restart")
            self.assertEqual(decision["before"]["memory_bytes"], LIMIT)
            self.assertGreaterEqual(decision["after"]["memory_bytes"], LIMIT * 3 // 2)
            figures = {figure["name"]: figure["value"] for figure in decision["evidence"]}
            self.assertEqual(figures["memory limit"], LIMIT, figures)
            self.assertEqual(outcomes[name]["verdict"], "helped", outcomes[name])
            said = self.explain(job, decision["id"])
            for word in (killed_by, "100 MiB", "out-of-memory", "helped"):
                self.assertIn(word, said)

    def test_kernel_kills(self):
        """Servers and workers, by the kernel."""
        with self.job(("ps", "worker"), mib=120) as job:
            kills = kernel_kills()
            run = self.begin(job)
            if remark := self.remark(job):
                job.kill(run)
                self.skipTest(remark)
            self.wait_for(job, run, "outcomes", lambda: len(self.outcomes(self.events(job))) == len(NAMES))
            if kills is not None:
                self.assertGreaterEqual(kernel_kills(), kills + len(NAMES))
            self.expect_explained(job, "killed by the kernel")
            restarts = job.finish(run)["restarts"]
            self.assertEqual((restarts["ps"], restarts["worker"], restarts["scaler"]), (2, 2, 0))

    def test_without_groups(self):
        """The same if the kernel cannot enforce limits: Muster watches, kills, and reports its own kill."""
        with self.job(("ps", "worker"), mib=120) as job:
            if subprocess.run([*HIDE_GROUPS, "true"], capture_output=True, check=False).returncode == 0:
                job.wrapper = HIDE_GROUPS
            run = self.begin(job)
            if not self.remark(job):
                job.kill(run)
                self.skipTest("groups can be written here, and cannot be hidden")
            self.wait_for(job, run, "outcomes", lambda: len(self.outcomes(self.events(job))) == len(NAMES))
            self.expect_explained(job, "killed by Muster for its memory")
            job.finish(run)

    def test_at_the_bound(self):
        """A node that cannot get more stops the job, and one sentence says why."""
        with self.job(("worker",), mib=300, max={"memory": LIMIT + 20 * MIB}) as job:
            run = self.begin(job)
            job.wait(run, 1)
            summary = job.summary()
            self.assertEqual(summary["state"], "failed")
            self.assertRegex(summary["reason"], r"worker-[01].*120 MiB.*max")
            self.assertIn(summary["reason"], job.said())
            stops = [e for e in self.events(job).values() if e["kind"] == "decision" and e["action"] not in ("restart", "")]
            self.assertEqual(len(stops), 1, stops)


def main():
    global options
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="Example: out_of_memory_test.py -k bound --muster build/dev/cli/muster --trainer build/dev/cli/verify_worker "
               "--hungry build/dev/tests/integration/libhungry.so")
    counter_job.add_arguments(parser)
    parser.add_argument("--hungry", required=True, type=os.path.abspath, help="the library that takes memory")
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
