#!/usr/bin/env python3
"""Each signal that a person or a system sends goes to each kind of process of a job, and to the `muster supervise` above it: the job
continues, and its weights are exact.

Python's standard library only.
"""

import os
import signal
import sys
import unittest

import counter_job
from counter_job import processes

# A process that is stopped goes on at once: hang_test.py and scaler_test.py have those that do not.
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM,
           signal.SIGPIPE, signal.SIGWINCH, signal.SIGCONT, signal.SIGTSTP)
ROLES = ("master", "scaler", "ps", "worker")
options = None


class SignalsTest(unittest.TestCase):
    def all_run(self, job, run):
        """{role: a pid of it}, when every node runs; None until then."""
        status = job.status()
        if status is None or len(status["nodes"]) != 6:
            return None
        if any(node["state"] != "running" for node in status["nodes"] if node["name"] != "master"):
            return None
        there = processes.nodes(run.pid, os.path.basename(job.trainer))
        told = {node["pid"] for node in status["nodes"]}
        found = {role: [pid for pid in there[role] if pid in told] for role in ROLES}
        return {role: pids[0] for role, pids in found.items()} if all(found.values()) else None

    def trains_on(self, job, run, what):
        """Records are done by a job in which every node runs."""
        job.wait_for(run, f"every node after {what}", lambda: self.all_run(job, run))
        before = job.wait_for(run, "progress", job.progress)[0]
        job.linger(before)
        job.wait_for(run, f"records after {what}", lambda: (seen := job.progress()) is not None and seen[0] > before)

    def send(self, job, run, number, above):
        for role in ROLES:
            pid = job.wait_for(run, "every node", lambda: self.all_run(job, run))[role]
            if above:
                pid = processes.parent(pid)
                self.assertIn("supervise", processes.command_line(pid))
            what = f"{signal.Signals(number).name} to {'the supervise of ' if above else ''}the {role}"
            print(what, pid, flush=True)
            self.assertTrue(processes.send(pid, number))
            if number == signal.SIGTSTP:
                processes.send(pid, signal.SIGCONT)
            self.trains_on(job, run, what)

    def check(self, seed, above):
        with counter_job.CounterJob(options, seed=seed, records=40000, epochs=1, slow_us=60000) as job:
            job.silence = "60s"
            job.failures_max = 20  # SIGQUIT and the like are crashes of the trainer
            run = job.begin(0.001)
            for number in SIGNALS:
                self.send(job, run, number, above)
            job.finish(run)

    def test_processes(self):
        self.check(41, above=False)

    def test_supervisors(self):
        self.check(42, above=True)


def main():
    global options
    options, rest = counter_job.arguments(__doc__, "signals_test.py -k supervisors")
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
