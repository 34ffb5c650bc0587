#!/usr/bin/env python3
"""A job that an earlier version began and that was drained in the middle is refused with a sentence if its data were cut in
another way, and its weights can be taken along. A running job goes on when its program's file is replaced.

states/version-X.Y.tar.gz has the job file and the state directory of the counter job as that version left them, without
logs, sockets and token. README.md beside this file says how to make one.
"""

import argparse
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import counter_job  # noqa: E402

STATES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "states")
RECORDS, EPOCHS = 2000, 2
options = None


class UpgradeTest(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="muster-upgrade-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def unpack(self, state):
        with tarfile.open(state) as tar:
            tar.extractall(self.folder)
        with open(self.path("numbers-0.txt"), "w", encoding="utf-8") as file:
            file.write("".join(f"{i}\n" for i in range(RECORDS)))
        with open(self.path("job.yaml"), encoding="utf-8") as file:
            text = file.read()
        with open(self.path("job.yaml"), "w", encoding="utf-8") as file:
            file.write(text.replace("TRAINER", json.dumps(options.trainer)))

    def muster(self, *arguments):
        done = subprocess.run([options.muster, *arguments], capture_output=True, text=True, check=False, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def epochs(self):
        answer = self.muster("status", "job.yaml", "--output", "json")
        return json.loads(answer[answer.index("{") : answer.rindex("}") + 1])["datasets"][0]["epochs"]

    def refused(self, *arguments):
        done = subprocess.run([options.muster, *arguments], capture_output=True, text=True, check=False, cwd=self.folder)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn("a version of Muster before 0.3, which cut data into shards in another way", done.stdout + done.stderr)

    def test_the_weights_of_a_job_of_every_earlier_version_can_be_taken_along(self):
        states = sorted(glob.glob(os.path.join(STATES, "version-*.tar.gz")))
        self.assertGreater(len(states), 0)
        for state in states:
            with self.subTest(state=os.path.basename(state)):
                self.unpack(state)
                self.refused("status", "job.yaml")
                self.refused("run", "job.yaml", "--no-progress")
                told = self.muster("events", "job.yaml")
                self.assertRegex(told, "run-started ", "by the master")
                self.assertRegex(told, "#1 decision ", "by the scaler")
                self.muster("export", "job.yaml", "--output-dir", self.path("out"))
                self.assertTrue(os.path.exists(self.path("out/export.json")), os.listdir(self.path("out")))
                with open(self.path("job.yaml"), encoding="utf-8") as file:
                    text = file.read()
                with open(self.path("job.yaml"), "w", encoding="utf-8") as file:
                    file.write(text.replace("stateDirectory: state", "stateDirectory: again"))
                self.muster("run", "job.yaml", "--no-progress")
                self.assertEqual([epoch["records_committed"] for epoch in self.epochs()], [RECORDS] * EPOCHS)
                shutil.rmtree(self.path("again"))
                shutil.rmtree(self.path("out"))
                shutil.rmtree(self.path("state"))

    def test_a_running_job_outlives_its_program_file(self):
        """Another version takes the program's name under a running job. Every node still comes back, of the old version."""
        with counter_job.CounterJob(options, seed=5, records=4000, epochs=2, slow_us=200000) as job:
            job.write_data(random.Random(5))
            job.write_job()
            job.muster = shutil.copy2(options.muster, job.path("muster"))
            run = job.start()
            job.wait_progress(run, 0.02)
            # As package managers do it: the new file takes the name, and the old one lives on while it runs.
            with open(job.path("muster.new"), "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\nexit 99\n")
            os.chmod(job.path("muster.new"), 0o755)
            os.rename(job.path("muster.new"), job.path("muster"))
            job.muster = options.muster
            for name in ("ps-0", "worker-0", "scaler", "master"):
                dead = self.pid_of(job, name)
                os.kill(dead, signal.SIGKILL)
                end = time.monotonic() + 60
                while (pid := self.pid_of(job, name)) in (None, dead):
                    self.assertIsNone(run.poll(), job.last_words())
                    self.assertLess(time.monotonic(), end, f"{name} does not come back\n{job.last_words()}")
                    time.sleep(0.05)
                self.assertEqual(os.readlink(f"/proc/{pid}/exe").endswith(" (deleted)"), name != "worker-0")
            job.finish(run)

    def pid_of(self, job, name):
        """Of the node's process that runs now; None while there is none, or none is known."""
        nodes = (job.status() or {"nodes": []})["nodes"]
        return next((node["pid"] for node in nodes if node["name"] == name and node["state"] == "running"), None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(epilog="Example: upgrade_test.py --muster build/dev/cli/muster --trainer build/dev/cli/verify_worker")
    parser.add_argument("--muster", required=True)
    parser.add_argument("--trainer", required=True)
    options, rest = parser.parse_known_args()
    options.muster, options.trainer = os.path.abspath(options.muster), os.path.abspath(options.trainer)
    unittest.main(argv=[sys.argv[0], *rest])
