"""Tests scripts/lib/group_runs.py, loss_plot.py and diloco_demo.py: what the members of a group have written, the picture of it, and
the comparison of runs with local steps."""

import contextlib
import io
import os
import random
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))
import diloco_demo
import group_runs
import loss_plot


class GroupRunsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="muster-group-runs-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, data):
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(data)

    def test_members_together_have_all_steps(self):
        self.assertEqual(group_runs.last_step(self.folder), 0)
        self.write("loss-worker-0.csv", b"1,0,6.5\n2,0,6.25\n")
        self.write("loss-worker-1.csv", b"2,0,6.25\n3,1,6\n4,1,5.")  # the last line is still being written
        self.assertEqual(group_runs.losses(self.folder), {1: (0, 6.5), 2: (0, 6.25), 3: (1, 6.0)})
        self.assertEqual(group_runs.last_step(self.folder), 3)

    def test_members_that_differ_are_an_error(self):
        self.write("loss-worker-0.csv", b"2,0,6.25\n")
        self.write("loss-worker-1.csv", b"2,0,6.26\n")
        with self.assertRaisesRegex(ValueError, "step 2 "):
            group_runs.losses(self.folder)
        self.assertEqual(group_runs.last_step(self.folder), 2)

    def test_the_newest_model_counts(self):
        with self.assertRaisesRegex(ValueError, "no member"):
            group_runs.model(self.folder)
        self.write("model-worker-0.bin", b"sizes updates 90\n\x00\x01")
        self.write("model-worker-1.bin", b"sizes updates 100\n\x00\x02")
        self.write("model-worker-2.bin", b"sizes updates 100\n\x00\x02")
        self.assertEqual(group_runs.model(self.folder).updates, 100)
        self.assertEqual([os.path.basename(path) for _, path, _ in group_runs.models(self.folder)],
                         ["model-worker-0.bin", "model-worker-1.bin", "model-worker-2.bin"])
        self.write("model-worker-2.bin", b"sizes updates 100\n\x00\x03")
        with self.assertRaisesRegex(ValueError, "after 100 steps"):
            group_runs.model(self.folder)


class LossPlotTest(unittest.TestCase):
    def test_ticks_are_round_and_inside(self):
        self.assertEqual(loss_plot.ticks(0, 10), [0, 2, 4, 6, 8, 10])
        self.assertEqual(loss_plot.ticks(2, 7), [2, 3, 4, 5, 6, 7])
        self.assertEqual(loss_plot.ticks(0, 1880), [0, 500, 1000, 1500])

    def test_curves_and_marks_are_where_they_belong(self):
        lines = [[(0, 4.0), (50, 2.0)], [(0, 4.0), (100, 2.0)]]
        text = "\n".join(loss_plot.svg(["a < b", "c"], [("step", lines, [(50, "killed")])]))
        svg = xml.fromstring(text)
        name = "{http://www.w3.org/2000/svg}"
        found = [[tuple(map(float, point.split(","))) for point in line.get("points").split()] for line in svg.iter(name + "polyline")]
        left, right = loss_plot.LEFT, loss_plot.WIDTH - loss_plot.RIGHT
        top, bottom = loss_plot.TOP, loss_plot.HEIGHT - loss_plot.BOTTOM
        self.assertEqual(found, [[(left, top), ((left + right) / 2, bottom)], [(left, top), (right, bottom)]])
        marked = [line for line in svg.iter(name + "line") if line.get("stroke-dasharray")]
        self.assertEqual([float(line.get("x1")) for line in marked], [(left + right) / 2])
        self.assertLessEqual({"a < b", "c", "step", "killed"}, {element.text for element in svg.iter(name + "text")})


def run_with(name, losses, *, committed=100, disturbed=()):
    """A finished run whose epochs had these losses, in training and in the test."""
    epochs = [{"epoch": i, "records_expected": 100, "records_committed": committed, "metrics": {"loss": loss}} for i, loss in enumerate(losses)]
    summary = {"datasets": [{"name": "train", "epochs": epochs}, {"name": "test", "epochs": epochs[::-1]}], "restarts": {"worker": 1}}
    return diloco_demo.Done(name, summary, group_runs.Model(9, ""), list(disturbed))


class DilocoDemoTest(unittest.TestCase):
    def report(self, disturbed, planned=0):
        """Whether the figures are good, and what was printed."""
        runs = [run_with("a", [4, 3]), run_with("b", [4.2, 3.1]), run_with("c", [4.4, 3.2])]
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            good = diloco_demo.report(runs, disturbed, planned)
        return good, said.getvalue()

    def test_a_job_file_gets_its_seeds(self):
        with open(os.path.join(ROOT, "examples", "text", diloco_demo.JOB), encoding="utf-8") as file:
            text = diloco_demo.seeded(file.read(), 42)
        self.assertIn("\n  seed: 42\n", text)
        self.assertIn('--seed, "42"', text)

    def test_the_plan_has_kills_and_pauses_of_all(self):
        planned = diloco_demo.plan(50, random.Random(1))
        self.assertEqual(len(planned), 50)
        self.assertEqual({(role, pause > 0) for role, pause in planned},
                         {("worker", True), ("worker", False), ("master", True), ("master", False)})
        self.assertEqual(sum(role == "master" for role, _ in planned), 10)

    def test_the_losses_decide(self):
        self.assertTrue(self.report(run_with("d", [4.3, 3.05]))[0])
        good, said = self.report(run_with("d", [4.3, 3.5]))
        self.assertFalse(good)
        self.assertIn("ABOVE", said)
        self.assertIn("MISSED", said)
        good, said = self.report(run_with("d", [4.3, 2.7]))
        self.assertTrue(good)
        self.assertIn("below", said)
        self.assertFalse(self.report(run_with("d", [6.5, 3.1]))[0])  # the mean of all epochs

    def test_records_and_disturbances_decide_too(self):
        self.assertFalse(self.report(run_with("d", [4.3, 3.05], committed=99))[0])
        kills = [(3, "SIGKILL to a worker"), (5, "a master was paused for 1.0 s")]
        self.assertFalse(self.report(run_with("d", [4.3, 3.05], disturbed=kills), planned=3)[0])
        good, said = self.report(run_with("d", [4.3, 3.05], disturbed=kills), planned=2)
        self.assertTrue(good)
        self.assertIn("2 disturbances of 2: 1 kills and 1 pauses, 1 of them of the master", said)


if __name__ == "__main__":
    unittest.main()
