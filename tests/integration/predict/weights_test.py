#!/usr/bin/env python3
"""Predictions with the weights of another job, which trains meanwhile or has ended. Python's standard library only.

The job that trains adds up in the row of each record number how often it was trained. So the outputs say which weights they are of.
"""

import argparse
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

import predict_test
from predict_test import processes, rows_of

RECORDS = 4_000
EPOCHS = 1_000_000  # it ends when it is drained
POSITION = re.compile(r"the weights are those of (job 'train' \((\w+)\), in which ([\d,]+) of 4,000,000,000 records of training are COMMITTED)(.*)")
options = None


class WeightsTest(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="muster-weights-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        open(self.path("slow"), "w", encoding="ascii").close()
        self.write("train", [{"name": "train", "records": RECORDS, "epochs": EPOCHS, "minibatchSize": 500}], SLOW=self.path("slow"))
        self.write("new", [{"name": "new", "records": RECORDS, "mode": "predict", "output": "outputs", "minibatchSize": 500}])

    def write(self, name, datasets, **environment):
        job = {"apiVersion": "muster/v1", "kind": "TrainingJob", "metadata": {"name": name}, "spec": {
            "stateDirectory": f"state-{name}", "datasets": datasets, "snapshots": {"interval": "500ms"},
            "restarts": {"crashLoopExits": 2, "backoffInitial": "100ms"},
            "replicaSpecs": {"worker": {"command": [options.trainer], "env": environment}}}}
        with open(self.path(f"{name}.yaml"), "w", encoding="ascii") as file:
            json.dump(job, file)

    def path(self, name):
        return os.path.join(self.folder, name)

    def call(self, *arguments):
        return subprocess.run([options.muster, *arguments], cwd=self.folder, capture_output=True, text=True, check=False, timeout=200)

    def predict(self, weights="train.yaml", **more):
        return self.call("predict", "new.yaml", "--weights", weights, "--no-progress", *more.get("options", ()))

    def committed(self, run):
        """How many records of the training are COMMITTED, when there are some."""
        deadline = time.monotonic() + 100
        while True:
            if run.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the training got nowhere, or has ended: {run.poll()}")
            status = self.call("status", "train.yaml", "--no-wait", "--output", "json")
            if status.returncode == 0 and (count := json.loads(status.stdout)["progress"]["records_committed"]) > 0:
                return count
            time.sleep(0.1)

    def require_outputs(self, committed):
        """They are of weights that have seen at least so many records."""
        rows = [row for name in sorted(os.listdir(self.path("outputs"))) if name.endswith(".npy") for row in rows_of(self.path(f"outputs/{name}"))]
        self.assertEqual([number for number, _ in rows], list(range(RECORDS)))
        self.assertGreaterEqual(sum(count for _, count in rows), committed)

    def test_of_a_job_that_runs_and_of_one_that_was_drained(self):
        run = subprocess.Popen([options.muster, "run", "train.yaml", "--no-progress"], cwd=self.folder)
        self.addCleanup(processes.stop_group, run)
        before = self.committed(run)
        done = self.predict()
        self.assertEqual(done.returncode, 0, done.stderr)
        position, state, committed, more = POSITION.search(done.stderr).groups()
        self.assertEqual((state, more), ("running", ""))
        committed = int(committed.replace(",", ""))
        self.assertGreaterEqual(committed, before)
        self.require_outputs(committed)
        for name, mode in (("", 0o700), ("weights/export.json", 0o600)):
            self.assertEqual(stat.S_IMODE(os.stat(self.path(f"state-new-predict/{name}")).st_mode), mode, "others may not read it")
        # The same command goes on with the same weights, although the training has gone on.
        again = self.predict()
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn(f"the weights are those of {position}, as when this job began", again.stderr)
        self.assertEqual(self.call("drain", "train.yaml").returncode, 0)
        run.wait(timeout=100)
        shutil.rmtree(self.path("outputs"))
        later = self.predict(self.path("state-train"), options=["--state-dir", "later"])
        self.assertEqual(later.returncode, 0, later.stderr)
        _, state, final, _ = POSITION.search(later.stderr).groups()
        self.assertEqual(state, "drained")
        self.assertGreater(int(final.replace(",", "")), committed)
        self.require_outputs(int(final.replace(",", "")))

    def test_ctrl_c_drains_the_predictions_and_the_same_command_continues(self):
        self.write("train", [{"name": "train", "records": RECORDS, "minibatchSize": 500}])
        self.assertEqual(self.call("run", "train.yaml", "--no-progress").returncode, 0)
        self.write("new", [{"name": "new", "records": RECORDS, "mode": "predict", "output": "outputs", "minibatchSize": 2,
                            "minibatchesPerShard": 50}], SLOW=self.path("slow"))
        command = [options.muster, "predict", "new.yaml", "--weights", "train.yaml", "--no-progress"]
        run = subprocess.Popen(command, cwd=self.folder)
        self.addCleanup(processes.stop_group, run)
        predict_test.wait_for(run, "outputs", lambda: os.path.exists(self.path("outputs/new-00000000.npy")))
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(timeout=100), 3)
        self.assertFalse(os.path.exists(self.path("outputs/new-00000039.npy")))
        os.remove(self.path("slow"))
        self.assertEqual(subprocess.run(command, cwd=self.folder, check=False, timeout=100).returncode, 0)
        self.require_outputs(RECORDS)

    def test_what_does_not_fit_is_an_error(self):
        never = self.predict()
        self.assertEqual(never.returncode, 5, never.stderr)
        self.assertRegex(never.stderr, r"muster: --weights: no job runs, or has run, with the state directory \S+state-train, so there are no weights\. (No job runs|On this machine runs)")
        self.write("train", [{"name": "train", "records": RECORDS, "minibatchSize": 500}])
        self.assertEqual(self.call("run", "train.yaml", "--no-progress").returncode, 0)
        self.write("new", [{"name": "new", "records": RECORDS, "mode": "predict", "output": "outputs"}], DIM="2")
        other = self.predict()
        self.assertEqual(other.returncode, 1, other.stderr)
        self.assertRegex(other.stdout, r'table "counts" cannot start from its export: .*state-new-predict/weights')


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="Example: weights_test.py --muster build/dev/cli/muster "
                                     "--trainer build/dev/tests/integration/predict/predict_trainer")
    parser.add_argument("--muster", required=True, type=os.path.abspath)
    parser.add_argument("--trainer", required=True, type=os.path.abspath)
    options, rest = parser.parse_known_args()
    unittest.main(argv=sys.argv[:1] + rest, verbosity=2)
