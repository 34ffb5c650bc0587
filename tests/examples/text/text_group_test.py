#!/usr/bin/env python3
"""The trainer of examples/text through `muster run`, with and without a killed member: the same losses and weights, bit for bit.

Python's standard library only.
"""

import argparse
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))
import group_runs  # noqa: E402
import processes  # noqa: E402

TRAINER = "text_trainer"
RECORDS, EPOCHS, MINIBATCH, GLOBAL_BATCH = 1200, 6, 4, 24
STEPS = EPOCHS * (RECORDS * 9 // 10 // GLOBAL_BATCH)
JOB = f"""apiVersion: muster/v1
kind: TrainingJob
metadata: {{name: tiny-text}}
spec:
  seed: 3
  stateDirectory: state
  datasets:
    - {{name: train, files: [train.txt], epochs: {EPOCHS}, minibatchSize: {MINIBATCH}, shuffle: true}}
    - {{name: test, files: [test.txt], mode: evaluate, minibatchSize: {MINIBATCH}}}
  group: {{globalBatch: {GLOBAL_BATCH}}}
  restarts: {{backoffInitial: 100ms}}
  replicaSpecs:
    ps:     {{replicas: 1}}
    worker: {{replicas: 2, command: [./{TRAINER}, --context, "16", --width, "24", --blocks, "1", --warmup, "20", --seed, "5"]}}
"""
options = None


class TextGroupTest(unittest.TestCase):
    def run_job(self, disturb=None):
        """The folder after a run that succeeded; `disturb(run, folder)` does what it likes meanwhile."""
        folder = os.path.realpath(tempfile.mkdtemp(prefix="muster-text-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        subprocess.run([os.path.join(ROOT, "examples", "text", "prepare_data"), folder, "--context", "16", "--records", str(RECORDS)], check=True)
        os.symlink(options.trainer, os.path.join(folder, TRAINER))
        with open(os.path.join(folder, "job.yaml"), "w", encoding="utf-8") as file:
            file.write(JOB)
        log = os.path.join(folder, "run.log")
        with open(log, "w", encoding="utf-8") as output:
            run = subprocess.Popen([options.muster, "run", "job.yaml"], cwd=folder, stdout=output, stderr=subprocess.STDOUT)
        self.addCleanup(processes.stop_group, run)
        if disturb is not None:
            disturb(run, folder)
        code = run.wait(timeout=100)
        with open(log, encoding="utf-8") as file:
            self.assertEqual(code, 0, file.read())
        return folder

    def kill_a_member(self, run, folder):
        """As soon as an eighth of the steps has happened."""
        end = time.monotonic() + 60
        while time.monotonic() < end and run.poll() is None:
            members = processes.nodes(run.pid, TRAINER)["worker"]
            if STEPS // 8 <= group_runs.last_step(folder) < STEPS and len(members) == 2:
                os.kill(members[0], signal.SIGKILL)
                return
            time.sleep(0.005)
        self.fail("no member could be killed before the end of the job")

    def test_a_killed_member_leaves_no_trace(self):
        plain, killed = self.run_job(), self.run_job(self.kill_a_member)
        with open(os.path.join(killed, "state", "summary.json"), encoding="utf-8") as file:
            summary = json.load(file)
        self.assertGreaterEqual(summary["restarts"]["worker"], 1)
        for dataset in summary["datasets"]:
            for epoch in dataset["epochs"]:
                self.assertEqual(epoch["records_committed"], epoch["records_expected"], (dataset["name"], epoch))

        losses = group_runs.losses(plain)
        self.assertEqual(sorted(losses), list(range(1, STEPS + 1)))
        self.assertEqual(group_runs.losses(killed), losses)
        self.assertLess(losses[STEPS][1], losses[1][1] - 1, "it hardly learned")
        model = group_runs.model(plain)
        self.assertEqual(model.updates, STEPS)
        self.assertEqual(group_runs.model(killed), model)
        self.write_text(plain)

    def write_text(self, folder):
        """text_write continues a text by the model."""
        model = glob.glob(os.path.join(folder, "model-*.bin"))[0]
        command = [options.writer, "--model", model, "--prompt", "A job ", "--length", "30"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        self.assertRegex(said, r"\AA job [\n -~]{30}\n\Z")
        wrong = subprocess.run([*command, "--temperature", "0"], capture_output=True, text=True, check=False)
        self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
        self.assertIn("--temperature is '0'", wrong.stderr)


def main():
    global options
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="Example: text_group_test.py --muster build/dev/cli/muster --trainer build/dev/examples/text/text_trainer "
        "--writer build/dev/examples/text/text_write",
    )
    parser.add_argument("--muster", required=True, type=os.path.abspath, help="the muster executable")
    parser.add_argument("--trainer", required=True, type=os.path.abspath, help="the text_trainer executable")
    parser.add_argument("--writer", required=True, type=os.path.abspath, help="the text_write executable")
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
