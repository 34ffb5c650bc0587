#!/usr/bin/env python3
"""The demo, undisturbed, with a worker, a server and the master killed, from a topic, and as a group: the same quality. Python's standard library only.

Runs scripts/lib/demo.py as scripts/demo does. Both runs must reach the target with every record committed exactly once,
and what the kills change must be within what asynchronous training changes anyway.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))
import kafka_broker  # noqa: E402

DEMO = os.path.join(ROOT, "scripts", "lib", "demo.py")
KAFKA_DEMO = os.path.join(ROOT, "scripts", "lib", "kafka_demo.py")
GROUP_DEMO = os.path.join(ROOT, "scripts", "lib", "group_demo.py")
TEXT = os.path.join(ROOT, "examples", "text")
AUC_MIN, LOG_LOSS_MAX, DIFFERENCE_MAX = 0.81, 0.435, 0.005
options = None


class DemoTest(unittest.TestCase):
    def folder(self):
        """One as scripts/demo prepares it; it stays when the demo fails."""
        folder = tempfile.mkdtemp(prefix="muster-demo-")
        print(f"folder {folder}", flush=True)
        for name in ("train.csv", "test.csv"):
            os.symlink(os.path.join(options.data, name), os.path.join(folder, name))
        os.symlink(options.trainer, os.path.join(folder, "flights_trainer"))
        shutil.copy(os.path.join(ROOT, "examples", "flights", "job.yaml"), folder)
        return folder

    def demo(self, *arguments):
        """The summary of a demo."""
        folder = self.folder()
        subprocess.run([sys.executable, DEMO, "--muster", options.muster, "--job", "job.yaml", "--state", "state", *arguments],
                       cwd=folder, check=True)
        with open(os.path.join(folder, "state", "summary.json"), encoding="utf-8") as file:
            summary = json.load(file)
        shutil.rmtree(folder)
        return summary

    def require_target(self, summary):
        """The metrics of the last epoch, which reach the target."""
        for dataset in summary["datasets"]:
            for epoch in dataset["epochs"]:
                self.assertEqual(epoch["records_committed"], epoch["records_expected"], (dataset["name"], epoch))
        metrics = summary["metrics"]["test"]
        self.assertGreaterEqual(metrics["auc"], AUC_MIN)
        self.assertLessEqual(metrics["logloss"], LOG_LOSS_MAX)
        return metrics

    def test_kills_change_nothing(self):
        plain = self.require_target(self.demo())
        summary = self.demo("--kill")
        killed = self.require_target(summary)
        for role in ("worker", "ps", "master"):
            self.assertGreaterEqual(summary["restarts"][role], 1, role)
        for name in ("auc", "logloss"):
            self.assertLessEqual(abs(killed[name] - plain[name]), DIFFERENCE_MAX, name)

    def test_from_a_topic(self):
        try:
            kafka_broker.find()
        except kafka_broker.Missing as missing:
            self.skipTest(str(missing))
        folder = self.folder()
        shutil.copy(os.path.join(ROOT, "examples", "flights", "job-kafka.yaml"), os.path.join(folder, "job-kafka.template"))
        # It fails unless every record is committed once, there is no lag, and the AUC is that of the file.
        subprocess.run([sys.executable, KAFKA_DEMO, "--muster", options.muster], cwd=folder, check=True)
        shutil.rmtree(folder)

    def test_a_group(self):
        folder = tempfile.mkdtemp(prefix="muster-demo-")
        print(f"folder {folder}", flush=True)
        subprocess.run([os.path.join(TEXT, "prepare_data"), folder], check=True)
        shutil.copy(os.path.join(TEXT, "job.yaml"), folder)
        os.symlink(options.text_trainer, os.path.join(folder, "text_trainer"))
        # It fails unless the weights of its two runs are equal, bit for bit.
        subprocess.run([sys.executable, GROUP_DEMO, "--muster", options.muster, "--writer", options.text_writer], cwd=folder, check=True)
        self.assertTrue(os.path.exists(os.path.join(folder, "loss.svg")))
        shutil.rmtree(folder)


def main():
    global options
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="Example: demo_test.py --muster build/release/cli/muster --trainer build/release/examples/flights/flights_trainer "
        "--data build/release/flights_data",
    )
    parser.add_argument("--muster", required=True, type=os.path.abspath, help="the muster executable")
    parser.add_argument("--trainer", required=True, type=os.path.abspath, help="the flights_trainer executable")
    parser.add_argument("--text-trainer", type=os.path.abspath, help="the text_trainer executable, for a_group")
    parser.add_argument("--text-writer", type=os.path.abspath, help="the text_write executable, for a_group")
    parser.add_argument("--data", required=True, type=os.path.abspath, help="the folder that prepare_data wrote")
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
