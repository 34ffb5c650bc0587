#!/usr/bin/env python3
"""Unit test of the pure parts of benchmarks/growth: the jobs of an axis, and the plot."""

import os
import sys
import types
import unittest
import xml.etree.ElementTree

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "benchmarks"))
from growth import axes, epochs, files, members, plot, rates, shards, tensors  # noqa: E402
from speed import ours  # noqa: E402


class AxesTest(unittest.TestCase):
    def test_a_value_changes_its_field_alone(self):
        row = axes.row_of("keys", 100, "pull-push")
        self.assertEqual((row.keys.a_call, row.keys.rows, row.dim, row.mode, row.servers), (100, 1_000_000, 16, "pull-push", 1))
        row = axes.row_of("servers", 4, "pull")
        self.assertEqual((row.keys.a_call, row.keys.rows, row.dim, row.mode, row.servers), (10_000, 1_000_000, 64, "pull", 4))
        self.assertEqual(axes.row_of("partitions", 16, "pull").partitions, 16)
        self.assertEqual(axes.row_of("tables", 26, "pull").tables, 26)
        self.assertEqual((tensors.row_of(500).tables, tensors.row_of(500).mode), (500, "dense"))
        self.assertEqual(axes.row_of("rows", 100_000, "pull").keys.rows, 100_000)

    def test_every_value_of_every_axis_is_a_job(self):
        for name, axis in axes.AXES.items():
            for value in axis.values if axis.measured == "rates" else ():
                self.assertGreaterEqual(axes.row_of(name, value, "pull").keys.calls, 4)

    def test_half_of_the_shards_are_done_and_the_worker_does_not_hold_the_rest(self):
        options = types.SimpleNamespace(build="build", smoke=False)
        for value in axes.AXES["shards"].values:
            spec = shards.spec(options, value, "lines")
            self.assertEqual(int(spec["replicaSpecs"]["worker"]["command"][-1]), value // 2)
            self.assertLess(spec["training"]["shardsAhead"], value // 2)

    def test_the_worker_stands_still_after_a_number_of_epochs_and_more_are_left(self):
        options = types.SimpleNamespace(build="build", smoke=False)
        for value in axes.AXES["epochs"].values:
            spec = epochs.spec(options, value, "lines")
            self.assertEqual(spec["replicaSpecs"]["worker"]["command"][-2:], [str(value), "--push"])
            self.assertGreater(spec["datasets"][0]["epochs"], value + spec["training"]["shardsAhead"])

    def test_files_share_all_records(self):
        for records, number in ((10, 1), (10, 3), (4_000_000, 20_000), (100_000, 7)):
            shared = ours.parts(records, number)
            self.assertEqual((sum(shared), len(shared)), (records, number))
            self.assertLessEqual(max(shared) - min(shared), 1)

    def test_members_are_a_job_that_the_program_takes(self):
        words = members.arguments(1_000)
        sizes = dict(zip(words[::2], map(int, words[1::2])))
        self.assertEqual(sizes, {"--workers": 1_000, "--servers": 250, "--partitions": 4_000, "--done": 10_000})
        self.assertEqual(members.arguments(1)[3], "1")


def summary(median):
    return {"median": median, "min": median, "max": median, "n": 1}


class PointTest(unittest.TestCase):
    POINTS = {
        rates: {mode: {"rows_per_second": summary(2e6), "server_cpu_ns": summary(60), "worker_cpu_ns": summary(80)} for mode in rates.MODES},
        tensors: {"step_ms": summary(4), "server_cpu_ms": summary(2), "worker_cpu_ms": summary(3)},
        shards: {"memory_bytes": summary(50_000_000), "memory_max_bytes": summary(70_000_000), "serving_ms": summary(250)},
        epochs: {role: summary(40e6 + number) for number, role in enumerate(epochs.ROLES)} | {"epochs_per_second": summary(700)},
        files: {"records_per_second": summary(3e6), "worker_cpu_share": summary(0.8)},
        members: {"one_server_ms": summary(9), "all_servers_ms": summary(90), "steady_ms": summary(3)},
    }

    def test_every_line_has_a_height(self):
        self.assertEqual(rates.heights(self.POINTS[rates]), [2, 2])
        self.assertEqual(tensors.heights(self.POINTS[tensors]), [250])
        self.assertEqual(shards.heights(self.POINTS[shards]), [50, 70, 250])
        self.assertEqual(members.heights(self.POINTS[members]), [9, 90, 3])
        self.assertEqual([round(height) for height in epochs.heights(self.POINTS[epochs])], [40] * 5)
        self.assertEqual(files.heights(self.POINTS[files]), [3])
        for measured, point in self.POINTS.items():
            self.assertEqual(len(measured.LINES), len(measured.heights(point)))
            self.assertLessEqual(len(measured.LINES), len(plot.COLORS))

    def test_text_has_figures_and_units(self):
        self.assertIn("median 2.00 Mrows/s", next(rates.text(self.POINTS[rates])))
        self.assertIn("median 4.00 ms", next(tensors.text(self.POINTS[tensors])))
        self.assertEqual([line.partition(",")[0] for line in shards.text(self.POINTS[shards])],
                         ["memory of the master: median 50 MB", "its peak: median 70 MB", "from SIGKILL until it serves: median 250 ms"])
        self.assertIn("memory of the server: median 40.0 MB", list(epochs.text(self.POINTS[epochs]))[1])
        self.assertIn("median 3.00 M records/s", next(files.text(self.POINTS[files])))
        self.assertIn("a steady second: median 3.0 ms of CPU", list(members.text(self.POINTS[members]))[2])


class PlotTest(unittest.TestCase):
    def test_ticks_are_round_and_few(self):
        self.assertEqual(plot.ticks(1, 10), [1, 2, 5, 10])
        self.assertEqual(plot.ticks(0.9, 1100), [1, 10, 100, 1000])

    def test_numbers_are_short(self):
        self.assertEqual([plot.short(number) for number in (0.5, 16, 1024, 30_000_000)], ["0.5", "16", "1,024", "30M"])

    def test_a_scale_is_logarithmic(self):
        place = plot.scale(1, 100, 0, 10)
        self.assertEqual([round(place(value), 9) for value in (1, 10, 100)], [0, 5, 10])
        self.assertEqual(plot.scale(5, 5, 3, 9)(5), 3)

    GROUPS = [(["pull, Mrows/s", "push, Mrows/s"], [("a < b", [[(1, 1), (10, 5)], [(1, 2), (10, 3)]]), ("one point", [[(7, 4)], [(7, 2)]])]),
              (["memory, MB"], [("shards", [[(1, 1000), (10, 5000)]])])]

    def test_every_line_of_every_panel_is_drawn(self):
        root = xml.etree.ElementTree.fromstring("\n".join(plot.svg(self.GROUPS)))
        names = [element.tag.rpartition("}")[2] for element in root.iter()]
        self.assertEqual(names.count("polyline"), 5)
        self.assertEqual(names.count("circle"), 8)
        for element in root.iter():
            for name in ("x", "y", "cx", "cy"):
                self.assertGreaterEqual(float(element.get(name, 0)), 0)
        said = [element.text for element in root.iter() if element.text]
        for names, panels in self.GROUPS:
            self.assertLessEqual({*names, *(title for title, _ in panels)}, set(said))

    def test_panels_of_a_group_have_one_axis_and_other_groups_their_own(self):
        heights = {name: min(float(circle.get("cy")) for circle in group.iter("{http://www.w3.org/2000/svg}circle"))
                   for name, group in zip("ab", xml.etree.ElementTree.fromstring("\n".join(plot.svg(self.GROUPS))).findall(
                       "{http://www.w3.org/2000/svg}g"))}
        self.assertEqual(heights["a"], heights["b"])  # 5 is at the top of one, 5,000 at that of the other

    def test_groups_stand_side_by_side_while_they_fit(self):
        wide, narrow = (["x"], [("", None)] * 2), (["x", "y"], [("", None)])
        self.assertEqual(plot.places([wide, narrow])[0], [(0, 0), (2 * plot.WIDTH, 0)])
        deep = plot.HEIGHT + plot.legend_height([wide, narrow])
        self.assertEqual(plot.places([wide, wide, narrow]), ([(0, 0), (0, deep), (2 * plot.WIDTH, deep)], (3 * plot.WIDTH, 2 * deep)))
        four = (["x"], [("", None)] * 4)
        self.assertEqual(plot.places([four])[1], (3 * plot.WIDTH, 2 * plot.HEIGHT + plot.legend_height([four])))


if __name__ == "__main__":
    unittest.main()
