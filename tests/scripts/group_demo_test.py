"""Tests scripts/lib/group_runs.py and scripts/lib/loss_plot.py: what the members of a group have written, and the picture of it."""

import os
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))
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


if __name__ == "__main__":
    unittest.main()
