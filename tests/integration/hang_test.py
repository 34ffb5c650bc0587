#!/usr/bin/env python3
"""A worker that is alive and makes no progress: its stacks come into its log, it is started again, and the weights stay exact.
A server that is stopped is named as the reason.

Python's standard library only.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
import unittest

import counter_job

PATIENCE = 120  # seconds; only a failing test waits so long
PACE_US, FOR_EVER_US = 200_000, 1_000_000_000
VICTIM = "worker-0"
options = None


class HangTest(unittest.TestCase):
    def slow(self, node, microseconds):
        """So long does each further minibatch of that worker take."""
        path = self.job.path("slow-" + node)
        with open(path + ".new", "w", encoding="ascii") as file:
            file.write(str(microseconds))
        os.replace(path + ".new", path)

    def decisions(self):
        """Those of the policy, and what came of them, oldest first."""
        said = subprocess.run([self.job.muster, "events", "job.yaml", "--output", "json"], cwd=self.job.folder, text=True,
                              capture_output=True, check=False, timeout=60).stdout
        events = [json.loads(line) for line in said.splitlines()]
        return [event["event"] for event in events if event["source"] == "scaler" and event["event"]["policy"] == "hang"]

    def wait_for(self, what, condition):
        end = time.monotonic() + PATIENCE
        while not (value := condition()):
            self.assertLess(time.monotonic(), end, f"no result of the wait for: {what}\n{self.decisions()}\n{self.job.last_words()}")
            time.sleep(0.1)
        return value

    def decision(self, kind, action):
        return next((e for e in self.decisions() if e["kind"] == kind and e["action"] == action), None)

    def test_a_worker_hangs(self):
        with counter_job.CounterJob(options, seed=61, records=12000, epochs=2) as self.job:
            job = self.job
            job.write_data(random.Random(61))
            job.silence = "60s"
            # Each looks at a file of its own.
            job.worker = {"command": ["sh", "-c", f'exec "{job.trainer}" --slow-us 0 --slow-while "slow-$MUSTER_NODE"']}
            job.spec = {"scaler": {"hang": {"timeout": "10s", "firstTimeout": "10s"}}}
            job.write_job()
            for node in (VICTIM, "worker-1"):
                self.slow(node, PACE_US)
            run = job.start()
            job.wait_progress(run, 0.05)

            self.slow(VICTIM, FOR_EVER_US)
            dump = self.wait_for("stacks", lambda: self.decision("decision", "dump-stacks"))
            # The next process of it is well.
            self.slow(VICTIM, PACE_US)
            self.assertEqual(dump["target"], VICTIM)
            restart = self.wait_for("a restart", lambda: self.decision("decision", "restart"))
            self.assertEqual(restart["target"], VICTIM)
            outcome = self.wait_for("what came of it", lambda: self.decision("outcome", "restart"))
            self.assertEqual((outcome["cause_id"], outcome["verdict"]), (restart["id"], "helped"))
            with open(job.path(job.state, "logs", VICTIM + ".log"), encoding="utf-8", errors="replace") as file:
                self.assertRegex(file.read(), r"(?m)^.*thread \d+ \(.*\).*$")

            for node in (VICTIM, "worker-1"):
                os.remove(job.path("slow-" + node))
            job.wait(run, 0)
            restarts = job.require_complete()["restarts"]
            self.assertEqual((restarts["ps"], restarts["worker"]), (0, 1))
            job.require_closed_form()

    def test_a_server_that_is_stopped_is_the_reason_why_the_job_stands_still(self):
        with counter_job.CounterJob(options, seed=62, records=12000, epochs=1) as self.job:
            job = self.job
            job.write_data(random.Random(62))
            job.silence = "60s"
            job.write_job()
            run = job.start()
            job.wait_progress(run, 0.05)
            pid = next(node["pid"] for node in job.status()["nodes"] if node["name"] == "ps-0")
            os.kill(pid, signal.SIGSTOP)
            try:
                reason = self.wait_for("a reason", lambda: (job.status() or {}).get("reason"))
            finally:
                os.kill(pid, signal.SIGCONT)
            self.assertRegex(reason, r"^ps-0 runs, but has not called for \d+ s: it is stopped, hangs, or cannot reach")
            self.wait_for("no reason", lambda: (job.status() or {}).get("reason") == "")
            job.finish(run)


def main():
    global options
    options, rest = counter_job.arguments(__doc__, "hang_test.py")
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
