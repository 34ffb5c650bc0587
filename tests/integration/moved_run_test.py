#!/usr/bin/env python3
"""A run whose master and scaler are killed together with `muster run`, and continued under the same run id.

So a pod of a Job on Kubernetes is moved: its workers and servers live elsewhere. Here they join (`muster join`), so they are no
processes of `muster run`. They must not be started again, nothing may be lost, and every row must be the closed form.
Python's standard library only.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest

import counter_job
from counter_job import processes

import ports  # noqa: E402  (counter_job adds scripts/lib)

RUN_ID = "6f9619ff-8b86-d011-b42d-00c04fc964ff"
options = None


class MovedJob(counter_job.CounterJob):
    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        self.joins = []
        self.master = f"127.0.0.1:{ports.free_ports(1)[0]}"
        self.ps, self.worker = {"replicas": 2, "joined": 2}, {"replicas": 0}
        # However slow the machine is, silence is no reason here to start a node again.
        self.silence = "60s"
        self.spec["master"] = {"address": self.master}

    def start_run(self):
        return self.start("--run-id", RUN_ID)

    def join(self, role, name):
        command = [self.muster, "join", self.master, "--role", role, "--name", name, "--token-file", self.path("token"),
                   "--state-dir", self.path(f"join-{name}")]
        command += ["--", *self.command] if role == "worker" else []
        with open(self.path(f"{name}.log"), "w", encoding="utf-8") as output:
            self.joins.append(subprocess.Popen(command, cwd=self.folder, stdout=output, stderr=subprocess.STDOUT,
                                               stdin=subprocess.DEVNULL, start_new_session=True))
        self.runs.append(self.joins[-1])

    def take_token(self, run):
        made = self.path(self.state, "scaler", "token")
        end = time.monotonic() + 60
        while not os.path.exists(made):
            if run.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"there is no token\n{self.last_words()}")
            time.sleep(0.02)
        shutil.copyfile(made, self.path("token"))
        os.chmod(self.path("token"), 0o600)

    def join_all(self):
        for number in range(2):
            self.join("ps", f"ps-{number}")
            self.join("worker", f"worker-joined-{number}")

    def lives(self):
        """{node: (pid, restarts)} of the joined nodes, as the master knows them; None while it cannot be asked."""
        if (status := self.status()) is None:
            return None
        return {node["name"]: (node["pid"], node["restarts"]) for node in status["nodes"] if node["role"] in ("ps", "worker")}

    def wait_known(self, run):
        """Until the master has the present processes of master and scaler."""
        end = time.monotonic() + 60
        while True:
            nodes = (self.status() or {"nodes": []})["nodes"]
            pids = [node["pid"] for node in nodes if node["role"] in ("master", "scaler")]
            if len(pids) == 2 and set(pids) <= set(processes.descendants(run.pid)):
                return
            if run.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"the master knows {pids} as master and scaler\n{self.last_words()}")
            time.sleep(0.05)

    def kill_run(self, run):
        """SIGKILL to the pod: `muster run`, master and scaler at once."""
        below = processes.descendants(run.pid)
        for pid in [run.pid, *below]:
            processes.send(pid, signal.SIGKILL)
        run.wait()


class MovedRunTest(unittest.TestCase):
    def test_nothing_is_started_again(self):
        with MovedJob(options, seed=21, records=9000, epochs=2, slow_us=20000) as job:
            job.write_data(random.Random(21))
            job.write_job()
            run = job.start_run()
            job.take_token(run)
            job.join_all()
            committed = job.wait_progress(run, 0.1)
            lives = job.lives()
            self.assertEqual(sorted(lives), ["ps-0", "ps-1", "worker-joined-0", "worker-joined-1"])
            for share in (0.25, 0.4, 0.55):
                job.kill_run(run)
                run = job.start_run()
                job.wait_known(run)  # before, the journal answers for the progress
                committed = job.wait_progress(run, share, committed)
                print(f"killed and continued, {committed} committed", flush=True)
            self.assertEqual(job.lives(), lives, "the same processes, none started again")
            self.assertGreaterEqual(job.status()["master_incarnation"], 4, "each master has continued the journal")
            job.wait_known(run)
            job.hurry()
            self.assertEqual(run.wait(timeout=240), 0, job.last_words())
            for join in job.joins:
                self.assertEqual(join.wait(timeout=60), 0)
            job.require_complete()
            job.require_closed_form()


if __name__ == "__main__":
    options, rest = counter_job.arguments(__doc__, "moved_run_test.py")
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
