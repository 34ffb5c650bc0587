#!/usr/bin/env python3
"""Unit test of the pure parts of the rows of benchmarks/speed.py that are measured separately: steps while snapshots run and what they
cost, the flights beside a local process, pushes with and without windows."""

import os
import re
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "benchmarks"))
from speed import flights, phases, snapshots, tax, tls  # noqa: E402

MS = 1_000_000


class BurstTest(unittest.TestCase):
    def test_signs_that_follow_each_other_are_one_burst(self):
        self.assertEqual(phases.bursts([130, 100, 111, 200], before=5, after=2, gap=19), [(95, 132), (195, 202)])

    def test_nothing_shows(self):
        self.assertEqual(phases.bursts([], 1, 1, 1), [])


class ApartTest(unittest.TestCase):
    def test_a_step_that_touches_a_span_is_in_it(self):
        ends = [0, 10, 20, 30, 40, 50, 60]
        self.assertEqual(phases.apart(ends, [(15, 16), (39, 41)]), [False, True, False, True, True, False])

    def test_a_span_ends_where_the_step_begins(self):
        self.assertEqual(phases.apart([0, 10, 20], [(-5, 0), (20, 30)]), [False, False])

    def test_a_span_longer_than_steps_and_one_before_them_all(self):
        self.assertEqual(phases.apart([0, 10, 20, 30], [(-9, -5), (-3, 15)]), [True, True, False])


class SplitTest(unittest.TestCase):
    def test_rate_latency_and_longest_are_of_each_part(self):
        # 40 steps of 10 ms with a latency of 1 ms, then 40 of 20 ms with one of 3 ms, the last of them 50 ms longer.
        ends = [10 * MS * number for number in range(41)]
        ends += [ends[-1] + 20 * MS * number for number in range(1, 40)]
        ends.append(ends[-1] + 70 * MS)
        steps = [(end, 1 * MS if number <= 40 else 3 * MS) for number, end in enumerate(ends)]
        found = phases.split(steps, [(ends[40], ends[-1])])
        self.assertEqual((found["between"]["longest_ms"], found["between"]["p99_us"], found["between"]["seconds"]), (10, 1000, 0.4))
        self.assertAlmostEqual(found["between"]["steps_per_second"], 100)
        self.assertEqual((found["during"]["longest_ms"], found["during"]["p50_us"]), (70, 3000))
        self.assertAlmostEqual(found["during"]["steps_per_second"], 40 / 0.85)
        self.assertAlmostEqual(found["all"]["steps_per_second"], 80 / 1.25)

    def test_a_part_with_little_time_says_nothing(self):
        found = phases.split([(number * 1000, 1) for number in range(1000)], [(0, 500_000)])
        self.assertEqual(found, {"all": None, "during": None, "between": None})

    def test_a_part_with_few_steps_says_nothing(self):
        self.assertIsNone(phases.split([(number * 100 * MS, 1) for number in range(10)], [])["all"])


def part(rate, longest, p50=10, p99=20, seconds=10):
    return {"seconds": seconds, "steps_per_second": rate, "longest_ms": longest, "p50_us": p50, "p99_us": p99}


class CostTest(unittest.TestCase):
    PLAIN = {"rows_per_second": 1e6, "server_cpu_ns": 60, "memory": 100 << 20, "bytes": 0, "all": part(100, 4), "during": None, "between": part(100, 4)}
    NONE = {"pull-push": PLAIN, "small-push": PLAIN}
    PUSH = PLAIN | {"rows_per_second": 9e5, "memory": 103 << 20, "bytes": 50_000_000, "all": part(90, 9), "during": part(60, 9, seconds=2),
                    "between": part(96, 5, seconds=8)}
    SMALL = PLAIN | {"during": part(1, 1, p50=30, p99=50, seconds=2), "between": part(1, 1, p50=15, p99=20, seconds=8)}

    def test_what_is_lost_and_what_comes_on_top(self):
        found = snapshots.compared({"pull-push": self.PUSH, "small-push": self.SMALL}, self.NONE)
        for name, value in {"rate": 0.9, "rate_lost": 10, "rate_lost_inside": 6.25, "rate_lost_during": 37.5, "share": 20, "longest_ms": 9,
                            "longest_more_ms": 5, "longest_more_inside_ms": 4, "server_mib": 103, "memory_more": 3, "written": 5, "p50_us": 30,
                            "p99_us": 50, "p50_times": 3, "p99_times": 2.5, "p50_times_inside": 2, "p99_times_inside": 2.5}.items():
            with self.subTest(name):
                self.assertAlmostEqual(found[name], value)

    def test_snapshots_all_the_time_leave_nothing_between(self):
        always = self.PUSH | {"during": self.PUSH["all"], "between": None}
        found = snapshots.compared({"pull-push": always, "small-push": self.SMALL | {"between": None}}, self.NONE)
        self.assertEqual([found[name] for name in ("share", "rate_lost_inside", "longest_more_inside_ms", "p99_times_inside")], [100, None, None, None])
        self.assertAlmostEqual(found["rate_lost"], 10)

    def test_every_figure_is_shown_and_has_a_name(self):
        rounds = [{snapshots.NONE: self.NONE, "10s": {"pull-push": self.PUSH, "small-push": self.SMALL}}] * 2
        intervals = snapshots.summaries(rounds)
        self.assertEqual(set(intervals["10s"]), set(snapshots.FIGURES))
        self.assertLess(set(intervals[snapshots.NONE]), set(snapshots.FIGURES))
        lines = list(snapshots.text({"what": "x", "keys": {}, "intervals": intervals}))
        self.assertEqual(len(lines), 1 + len(intervals) + sum(map(len, intervals.values())))

    def test_the_default_is_measured(self):
        with open(os.path.join(ROOT, "docs", "job-file.md"), encoding="utf-8") as file:
            default = re.search(r"\| `spec.snapshots.interval` \| duration \| (\S+) \|", file.read()).group(1)
        self.assertIn(default, snapshots.INTERVALS)


class FlightsTest(unittest.TestCase):
    SAID = ("read 1000 records in 0.5000 s\nepoch 0: train log loss 0.5, test AUC 0.7, test log loss 0.5, 10 records/s\n"
            "epoch 1: train log loss 0.5, test AUC 0.7, test log loss 0.5, 1000 records/s\n"
            "epoch 2: train log loss 0.5, test AUC 0.7, test log loss 0.5, 500 records/s\n")

    def test_the_first_local_epoch_does_not_count(self):
        found = flights.local_figures(self.SAID, 1000, 6)
        self.assertEqual((found["rate_read"], found["rate"], found["cpu_us"]), (1000 / 1.5, 500, 2000))

    def test_another_number_of_records_is_refused(self):
        with self.assertRaises(flights.jobs.Failed):
            flights.local_figures(self.SAID, 999, 6)

    def test_what_the_example_prints(self):
        with open(os.path.join(ROOT, "examples", "flights", "flights_local.cc"), encoding="utf-8") as file:
            source = file.read()
        self.assertIn('"read %zu records in %.4f s\\n"', source)
        self.assertRegex(source, r'"epoch %d: .*%.0f records/s\\n"')

    def test_a_job_between_two_moments(self):
        def times(total, pull, push, shard):
            return {"total_us": total, "wait_pull_us": pull, "wait_push_us": push, "wait_shard_us": shard}
        found = flights.job_figures((10, 5000, 7, [times(1000, 0, 10, 1), times(1000, 100, 20, 2)]),
                                    (12, 9000, 11, [times(2000, 200, 60, 11), times(4000, 600, 70, 32)]))
        self.assertEqual(found, {"rate": 2000, "cpu_us": 1000, "pulls": 0.175, "pushes": 0.025, "shards": 0.01})

    def test_two_workers_are_set_against_twice_the_local_rate(self):
        found = flights.ratios({"rate": 300, "cpu_us": 6}, {"rate": 200, "rate_read": 250, "cpu_us": 2})
        self.assertEqual(found, {"rate": 0.75, "rate_read": 0.6, "cpu_us": 3})


class TaxTest(unittest.TestCase):
    def test_pairs_are_compared_and_forgetting_comes_on_top(self):
        # A slow pair is slow on both sides.
        found = tax.of_pairs({"with_ns": [11, 110, 12], "without_ns": [10, 100, 10], "forgetting_ns": [0.5, 0.7, 0.5], "rows_a_part": 4})
        self.assertAlmostEqual(found["tax"], 10 + 5)
        self.assertAlmostEqual(found["part_ns"], (2 + 0.5) * 4)
        self.assertEqual((found["with_ns"], found["without_ns"], found["forgetting_ns"]), (12, 10, 0.5))

    def test_every_figure_is_there(self):
        self.assertLess(set(tax.FIGURES), set(tax.of_pairs({"with_ns": [1], "without_ns": [1], "forgetting_ns": [1], "rows_a_part": 1})))


class TlsTest(unittest.TestCase):
    def test_what_is_worse_with_tls_is_below_one(self):
        def one(rate, cpu):
            return {"rows_per_second": rate * 1e6, "server_cpu_ns": cpu, "worker_cpu_ns": cpu}
        found = tls.summaries("pull", [{tls.PLAIN: one(8, 50), tls.TLS: one(4, 200)}])
        self.assertEqual((found["rows_per_second"][tls.PLAIN]["median"], found["rows_per_second"]["ratio"]["median"]), (8, 0.5))
        self.assertEqual((found["server_cpu_ns"][tls.TLS]["median"], found["server_cpu_ns"]["ratio"]["median"]), (200, 0.25))

    def test_only_the_encryption_differs(self):
        class Options:
            smoke = False
        plain, encrypted = (vars(tls.job_of(Options, "small", how)) for how in (tls.PLAIN, tls.TLS))
        self.assertEqual({name for name in plain if plain[name] != encrypted[name]}, {"tls"})
        self.assertTrue(plain["tcp"])


if __name__ == "__main__":
    unittest.main()
