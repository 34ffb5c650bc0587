#!/usr/bin/env python3
"""Unit test of what is pure in benchmarks/growth: the jobs of an axis, and the plot."""

import os
import sys
import unittest
import xml.etree.ElementTree

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "benchmarks"))
from growth import axes, plot  # noqa: E402


class AxesTest(unittest.TestCase):
    def test_a_value_changes_its_field_alone(self):
        row = axes.row_of("keys", 100, "pull-push")
        self.assertEqual((row.keys.a_call, row.keys.rows, row.dim, row.mode, row.servers), (100, 1_000_000, 16, "pull-push", 1))
        row = axes.row_of("servers", 4, "pull")
        self.assertEqual((row.keys.a_call, row.keys.rows, row.dim, row.mode, row.servers), (10_000, 1_000_000, 64, "pull", 4))
        self.assertEqual(axes.row_of("partitions", 16, "pull").partitions, 16)
        self.assertEqual(axes.row_of("rows", 100_000, "pull").keys.rows, 100_000)

    def test_every_value_of_every_axis_is_a_job(self):
        for name, axis in axes.AXES.items():
            for value in axis.values:
                self.assertGreaterEqual(axes.row_of(name, value, "pull").keys.calls, 4)


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

    def test_every_line_of_every_panel_is_drawn(self):
        panels = [("a < b", [[(1, 1), (10, 5)], [(1, 2), (10, 3)]]), ("one point", [[(7, 4)], [(7, 2)]])]
        root = xml.etree.ElementTree.fromstring("\n".join(plot.svg("Mrows/s", ["pull", "push"], panels)))
        names = [element.tag.rpartition("}")[2] for element in root.iter()]
        self.assertEqual(names.count("polyline"), 4)
        self.assertEqual(names.count("circle"), 6)
        for element in root.iter():
            for name in ("x", "y", "cx", "cy"):
                self.assertGreaterEqual(float(element.get(name, 0)), 0)


if __name__ == "__main__":
    unittest.main()
