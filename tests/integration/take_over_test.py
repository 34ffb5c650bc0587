#!/usr/bin/env python3
"""Two masters of one job on one state directory: the second takes the job over from the first, which stands still and then
continues. Python's standard library only."""

import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

import counter_job
from counter_job import processes

JOB_ID = "0123456789abcdef0123456789abcdef"
TAKEN_OVER = 8
options = None


class Gate:
    """The address of the job's master: forwards each connection to the master that is current when it comes."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.target, self.pairs = self.listener.getsockname()[1], None, []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            self.pairs.append((client, server))
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    @staticmethod
    def _carry(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def sever(self, pairs):
        for pair in pairs:
            for end in pair:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def close(self):
        self.listener.close()
        self.sever(self.pairs)


class TakeOverTest(unittest.TestCase):
    def setUp(self):
        self.gate, self.started = Gate(), []
        self.addCleanup(self.gate.close)
        self.addCleanup(self.end_all)

    def end_all(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()

    def start(self, job, name, command, environment=None):
        with open(job.path(name + ".log"), "ab") as log:
            process = subprocess.Popen(command, cwd=job.folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                       env=os.environ | (environment or {}))
        self.started.append(process)
        return process

    def master(self, job, name, *flags):
        return self.start(job, name, [job.muster, "master", "--job", "job.yaml", "--listen", "127.0.0.1:0", "--run-id", "one",
                                      "--job-id", JOB_ID, "--started-by", name, *flags])

    def log(self, job, name):
        with open(job.path(name + ".log"), encoding="utf-8") as file:
            return file.read()

    def port_of(self, job, name, process):
        """Of a master, once it serves."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if found := re.search(r"serves on port (\d+)", self.log(job, name)):
                return int(found.group(1))
            self.assertIsNone(process.poll(), self.log(job, name))
            time.sleep(0.02)
        raise AssertionError(f"{name} does not serve\n{self.log(job, name)}")

    def start_nodes(self, job):
        master = f"127.0.0.1:{self.gate.port}"
        os.makedirs(job.path("sockets"))
        for i in range(2):
            self.start(job, f"ps-{i}", [job.muster, "ps", "--name", f"ps-{i}", "--start", "1", "--master", master,
                                        "--socket-directory", "sockets", "--job-id", JOB_ID])
        for i in range(2):
            self.start(job, f"worker-{i}", job.command, {"MUSTER_MASTER": master, "MUSTER_NODE": f"worker-{i}", "MUSTER_JOB_ID": JOB_ID})

    def wait_state(self, job, seconds, reached, what):
        """The journal is read without its master, so this shows what was acknowledged."""
        end = time.monotonic() + seconds
        status = None
        while time.monotonic() < end:
            status = job.status()
            if status is not None and reached(status):
                return status
            time.sleep(0.05)
        raise AssertionError(f"{what} not within {seconds} s: {status}")

    @staticmethod
    def done(status):
        return sum(epoch["records_done"] for dataset in status["datasets"] for epoch in dataset["epochs"])

    def job(self, seed):
        job = counter_job.CounterJob(options, seed=seed, records=8000, epochs=2)
        job.write_data(random.Random(seed))
        job.write_job()
        os.makedirs(job.path("state"))
        shutil.copy(job.path("job.yaml"), job.path("state", "job.yaml"))  # as `muster run` does
        return job

    def finish(self, job):
        job.hurry()
        status = self.wait_state(job, 120, lambda status: status["state"].lower() == "succeeded", "the job has not ended")
        for dataset in status["datasets"]:
            for epoch in dataset["epochs"]:
                self.assertEqual(epoch["records_committed"], job.records)
        self.end_all()
        job.require_closed_form()

    def test_old_master_stands_still(self):
        with self.job(51) as job:
            first = self.master(job, "first")
            self.gate.target = self.port_of(job, "first", first)
            self.start_nodes(job)
            self.wait_state(job, 60, lambda status: self.done(status) > 0.15 * 16000, "the first 15 %")
            self.assertTrue(processes.send(first.pid, signal.SIGSTOP))
            refused = self.master(job, "refused")
            self.assertEqual(refused.wait(timeout=60), 1)
            self.assertIn("another master has it open", self.log(job, "refused"))

            second = self.master(job, "second", "--take-over")
            self.gate.target = self.port_of(job, "second", second)
            # Some processes find the new master, the others still hold their connections to the old one.
            self.gate.sever(self.gate.pairs[::2])
            self.assertTrue(processes.send(first.pid, signal.SIGCONT))
            self.assertEqual(first.wait(timeout=60), TAKEN_OVER)
            self.assertIn("another master has taken over the job", self.log(job, "first").splitlines()[-1])

            again = self.master(job, "first", "--take-over")
            self.assertEqual(again.wait(timeout=60), TAKEN_OVER, "a restart of the old one takes nothing back")
            self.assertIsNone(second.poll(), self.log(job, "second"))
            self.finish(job)

    def test_back_and_forth(self):
        """Each of several masters takes the job while the one before it works."""
        with self.job(52) as job:
            masters = [self.master(job, "master-0")]
            self.gate.target = self.port_of(job, "master-0", masters[0])
            self.start_nodes(job)
            for i in range(1, 5):
                name = f"master-{i}"
                self.wait_state(job, 60, lambda status: self.done(status) > i * 0.12 * 16000, f"progress under master {i - 1}")
                masters.append(self.master(job, name, "--take-over"))
                self.gate.target = self.port_of(job, name, masters[-1])
                self.assertEqual(masters[-2].wait(timeout=60), TAKEN_OVER)
                self.gate.sever(self.gate.pairs)
            kept = [entry for entry in os.listdir(job.path("state", "journal")) if re.fullmatch(r"g\d+", entry)]
            self.assertEqual(sorted(kept), ["g4", "g5"])
            self.finish(job)


def main():
    global options
    options, rest = counter_job.arguments(__doc__, "tests/integration/take_over_test.py")
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)


if __name__ == "__main__":
    main()
