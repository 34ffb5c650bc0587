#!/usr/bin/env python3
"""The scaler dies without any effect: the nodes continue, its successor adopts them, and exits in between are neither lost nor reported twice.

Every job ends with exact weights. Python's standard library only.
"""

import os
import random
import signal
import subprocess
import sys
import time
import unittest

import counter_job
from counter_job import processes

PATIENCE = 60  # seconds; only a failing test waits so long
options = None


class ScalerTest(unittest.TestCase):
    def begin(self, job):
        """The job runs, and its nodes train."""
        job.silence = "60s"
        return job.begin(0.02)

    def processes_of(self, job, run):
        return processes.nodes(run.pid, os.path.basename(job.trainer))

    def scaler_of(self, job, run, other_than=0):
        """The pid of a scaler that has adopted or started every node."""

        def there():
            status = job.status()
            if status is None:
                return None
            pids = {node["pid"] for node in status["nodes"] if node["name"] == "scaler" and node["state"] == "running"}
            found = [pid for pid in self.processes_of(job, run)["scaler"] if pid != other_than and pid in pids]
            return found[0] if found else None

        return job.wait_for(run, "a scaler", there)

    def exits_of(self, job, node):
        """The texts of the events that tell of the node's exits."""
        said = subprocess.run([job.muster, "events", "job.yaml", "--output", "json"], cwd=job.folder, text=True,
                              capture_output=True, check=True, timeout=60).stdout
        events = [counter_job.json.loads(line) for line in said.splitlines()]
        return [event["text"] for event in events if event["kind"] == "node-exited" and event["node"] == node]

    def node(self, job, name):
        """The node in the output of `muster status`; None while the master does not answer."""
        status = job.status()
        return next((node for node in status["nodes"] if node["name"] == name), None) if status else None

    def test_killed_ten_times(self):
        """Nothing is restarted, nothing is lost."""
        with counter_job.CounterJob(options, seed=31, records=8000, epochs=2, slow_us=200000) as job:
            run = self.begin(job)
            before = self.processes_of(job, run)
            self.assertEqual([len(before[role]) for role in ("master", "scaler", "ps", "worker")], [1, 1, 2, 2])
            rng = random.Random(31)
            scaler = 0
            for number in range(10):
                scaler = self.scaler_of(job, run, other_than=scaler)
                time.sleep(rng.uniform(0, 0.3))
                self.assertTrue(processes.send(scaler, signal.SIGKILL))
                print(f"kill {number + 1}: scaler {scaler}", flush=True)
            self.scaler_of(job, run, other_than=scaler)
            after = self.processes_of(job, run)
            for role in ("master", "ps", "worker"):
                self.assertEqual(after[role], before[role], role)
            summary = job.finish(run)
            self.assertEqual((summary["restarts"]["ps"], summary["restarts"]["worker"]), (0, 0))
            self.assertGreaterEqual(summary["restarts"]["scaler"], 10)
            self.assertEqual(summary["counters"]["redelivered_minibatches"], 0)
            for name in ("ps-0", "ps-1", "worker-0", "worker-1"):
                self.assertEqual(len(self.exits_of(job, name)), 1, name)

    def kill_behind_its_back(self, job, run, number):
        """A worker and a server get the signal `number` while the scaler stands still; then it is killed. Their names and pids."""
        scaler = self.scaler_of(job, run)
        processes.send(scaler, signal.SIGSTOP)
        victims = {}
        for role in ("worker", "ps"):
            pid = self.processes_of(job, run)[role][0]
            status = job.wait_for(run, "the status", job.status)
            name = next(node["name"] for node in status["nodes"] if node["pid"] == pid)
            victims[name] = pid
            self.assertTrue(processes.send(pid, number))
        self.assertEqual(processes.wait_gone(victims.values(), PATIENCE), [])
        self.computing = {name: self.computing_token(job, name) for name in victims if name.startswith("worker")}
        processes.send(scaler, signal.SIGKILL)
        self.scaler_of(job, run, other_than=scaler)
        return victims

    def computing_token(self, job, worker):
        """Of the shard that the dead process was computing, as it left it behind (proto/messages/slot_file.h); 0: it was between two."""
        with open(job.path("state", "run", worker + ".slot"), "rb") as file:
            return int.from_bytes(file.read()[16:24], "little")

    def expect_told_and_started_once(self, job, run, victims, signal_name):
        for name, pid in victims.items():
            job.wait_for(run, f"another {name}",
                          lambda name=name, pid=pid: (node := self.node(job, name)) and node["state"] == "running" and node["pid"] != pid)
            self.assertEqual(self.node(job, name)["restarts"], 1, name)
            exits = self.exits_of(job, name)
            self.assertEqual(len(exits), 1, exits)
            self.assertTrue(exits[0].startswith(f"pid {pid}: {signal_name}"), exits)

    def test_nodes_killed_while_it_is_dead(self):
        """A platform's kills count as no failure."""
        with counter_job.CounterJob(options, seed=32, records=8000, epochs=2, slow_us=200000) as job:
            run = self.begin(job)
            victims = self.kill_behind_its_back(job, run, signal.SIGKILL)
            self.expect_told_and_started_once(job, run, victims, "SIGKILL")
            summary = job.finish(run)
            self.assertEqual((summary["restarts"]["ps"], summary["restarts"]["worker"]), (1, 1))
            said = subprocess.run([job.muster, "events", "job.yaml"], cwd=job.folder, text=True, capture_output=True, check=True)
            self.assertNotIn("crashed with signal", said.stdout)

    def test_worker_crashes_while_it_is_dead(self):
        """The trainer's own fault: charged to the shard that it computed, once."""
        with counter_job.CounterJob(options, seed=33, records=8000, epochs=2, slow_us=200000) as job:
            run = self.begin(job)
            victims = self.kill_behind_its_back(job, run, signal.SIGABRT)  # a sanitizer makes an exit code of SIGSEGV
            self.expect_told_and_started_once(job, run, victims, "SIGABRT")
            said = subprocess.run([job.muster, "events", "job.yaml"], cwd=job.folder, text=True, capture_output=True, check=True)
            charged = sum(token != 0 for token in self.computing.values())
            self.assertEqual(said.stdout.count("crashed with signal 6"), charged, said.stdout)
            job.finish(run)

    def test_supervising_process_killed_with_it(self):
        """No process saw the node die, so its exit counts as SIGKILL."""
        with counter_job.CounterJob(options, seed=34, records=8000, epochs=2, slow_us=200000) as job:
            run = self.begin(job)
            worker = self.processes_of(job, run)["worker"][0]
            supervisor = processes.parent(worker)
            self.assertIn("supervise", processes.command_line(supervisor))
            status = job.wait_for(run, "the status", job.status)
            name = next(node["name"] for node in status["nodes"] if node["pid"] == worker)
            scaler = self.scaler_of(job, run)
            processes.send(scaler, signal.SIGSTOP)
            processes.send(supervisor, signal.SIGKILL)
            self.assertEqual(processes.wait_gone([supervisor, worker], PATIENCE), [])
            processes.send(scaler, signal.SIGKILL)
            self.expect_told_and_started_once(job, run, {name: worker}, "SIGKILL")
            job.finish(run)

    def test_killed_with_the_run(self):
        """SIGKILL to both: nothing is left, and the next run starts from the beginning."""
        with counter_job.CounterJob(options, seed=35, records=6000, epochs=1, slow_us=20000) as job:
            run = self.begin(job)
            scaler = self.scaler_of(job, run)
            processes.send(scaler, signal.SIGSTOP)
            processes.send(run.pid, signal.SIGSTOP)
            processes.send(scaler, signal.SIGKILL)
            job.kill(run)
            job.finish(job.start())

    def test_that_stands_still_is_replaced(self):
        with counter_job.CounterJob(options, seed=36, records=8000, epochs=2, slow_us=200000) as job:
            run = self.begin(job)
            before = self.processes_of(job, run)
            scaler = self.scaler_of(job, run)
            processes.send(scaler, signal.SIGSTOP)
            self.scaler_of(job, run, other_than=scaler)
            after = self.processes_of(job, run)
            self.assertEqual((after["ps"], after["worker"]), (before["ps"], before["worker"]))
            self.assertIn("killing scaler: it stood still", job.said())
            job.finish(run)


def main():
    global options
    options, rest = counter_job.arguments(__doc__, "scaler_test.py -k ten")
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
