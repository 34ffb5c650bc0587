"""Examples with PyTorch that are groups, with the installed wheel: run it with the Python that has both (wheel_test.py --torch does)."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import job  # noqa: E402


class TorchExamplesTest(unittest.TestCase):
    def test_two_towers(self):
        run = job.Example(self, "two_towers", ["towers.py", "make_ratings", "job.yaml"])
        run.start(["./make_ratings", "--records", "20000"])
        run.start([job.MUSTER, "run", "job.yaml"])
        self.assertGreater(run.summary()["metrics"]["test"]["auc"], 0.65, "untrained: 0.5")

    def test_gpt(self):
        run = job.Example(self, "gpt", ["gpt.py", "make_text", "job.yaml"])
        run.start(["./make_text"])
        run.start([job.MUSTER, "run", "job.yaml"])
        self.assertLess(run.summary()["metrics"]["test"]["loss"], 1.5, "untrained: 3.4; by how often each letter comes alone: 2.8")
        written = [name for name in os.listdir(run.folder) if name.startswith("written-")]
        self.assertTrue(run.read(written[0]).startswith("the "), written)


if __name__ == "__main__":
    unittest.main()
