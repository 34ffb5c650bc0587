#!/usr/bin/env python3
"""Unit test of the pure parts of benchmarks/speed: ratios and their spread, the figures of a job, the file of keys as peers read it."""

import os
import re
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "benchmarks"))
sys.path.insert(0, os.path.join(ROOT, "benchmarks", "peers"))
import torch_rpc  # noqa: E402
from speed import compare, ours, rows  # noqa: E402


class RatioTest(unittest.TestCase):
    def test_above_one_is_ours_better(self):
        self.assertEqual(compare.ratio("rows_per_second", 6, 3), 2)
        self.assertEqual(compare.ratio("p99_us", 6, 3), 0.5)

    def test_what_was_not_measured_has_none(self):
        self.assertIsNone(compare.ratio("rows_per_second", 6, None))
        self.assertIsNone(compare.ratio("rows_per_second", 0, 5))

    def test_is_taken_within_a_round(self):
        # Both are five times slower in the second round, so the ratio stays the same.
        spread = compare.ratios("rows_per_second", [{"rows_per_second": 10}, {"rows_per_second": 2}], [{"rows_per_second": 5}, {"rows_per_second": 1}])
        self.assertEqual(spread, {"median": 2, "min": 2, "max": 2, "n": 2})

    def test_spread(self):
        ours_, theirs = [{"p50_us": 1}, {"p50_us": 2}, {"p50_us": 4}], [{"p50_us": 8}] * 3
        self.assertEqual(compare.ratios("p50_us", ours_, theirs), {"median": 4, "min": 2, "max": 8, "n": 3})

    def test_share_of_a_limit_is_as_it_is(self):
        spread = compare.shares("step_ms", "memcpy_ms", [{"step_ms": 40}, {"step_ms": 30}, {}], [{"memcpy_ms": 10}, {"memcpy_ms": 10}, {"memcpy_ms": 1}])
        self.assertEqual((spread["min"], spread["max"], spread["n"]), (3, 4, 2))


class DepthTest(unittest.TestCase):
    def test_the_best_median_counts_not_the_best_round(self):
        rounds = [{"1": {"rows_per_second": 5}, "4": {"rows_per_second": 9}}, {"1": {"rows_per_second": 5}, "4": {"rows_per_second": 1}},
                  {"1": {"rows_per_second": 5}, "4": {"rows_per_second": 2}}]
        self.assertEqual(compare.best_depth(rounds, "rows_per_second"), "1")

    def test_the_shortest_latency_is_best(self):
        self.assertEqual(compare.best_depth([{"1": {"p50_us": 5}, "4": {"p50_us": 9}}], "p50_us"), "1")


class JobTest(unittest.TestCase):
    ONE = {"seconds": 2, "steps": 10, "rows": 1000, "records": 10, "bytes": 4000, "p50_us": 10, "p99_us": 90, "max_us": 100, "cpu_seconds": 1,
           "memory_max_bytes": 5000}

    def test_workers_add_up(self):
        merged = compare.merged([self.ONE, self.ONE | {"seconds": 4, "p50_us": 20, "p99_us": 50, "memory_max_bytes": 4000}])
        self.assertEqual((merged["rows_per_second"], merged["steps_per_second"], merged["rows"], merged["cpu_seconds"]), (750, 7.5, 2000, 2))
        self.assertEqual((merged["p50_us"], merged["p99_us"], merged["memory_max_bytes"], merged["seconds"]), (15, 90, 5000, 4))

    def figures(self, mode):
        return compare.of_row(mode, compare.merged([self.ONE]), server_cpu=0.5, master_cpu=0.25, tensor_bytes=1000)

    def test_cpu_is_of_a_row_or_of_a_shard(self):
        self.assertEqual(self.figures("pull")["server_cpu_ns"], 0.5e6)
        self.assertEqual(self.figures("pull")["worker_cpu_ns"], 1e6)
        self.assertEqual(self.figures("lease")["master_cpu_us"], 25_000)
        self.assertEqual(self.figures("lease")["shards_per_second"], 5)

    def test_step_and_memory_of_a_tensor(self):
        dense = self.figures("dense")
        self.assertEqual(dense["step_ms"], 0.01)
        self.assertAlmostEqual(dense["cpu_ms"], dense["server_cpu_ms"] + dense["worker_cpu_ms"])
        self.assertEqual(self.figures("dense")["tensors"], 5)

    def test_every_row_shows_what_its_mode_has(self):
        for name, row in rows.ROWS.items():
            found = self.figures(row.mode)
            raw = {"gather_rows_per_second": 1, "unix_bytes_per_second": 1, "tcp_bytes_per_second": 1}
            known = {**raw, **compare.in_rows(raw, 4), "unix_p50_us": 1, "unix_p99_us": 1, "memchr_bytes_per_second": 1, "memcpy_ms": 1}
            with self.subTest(name):
                self.assertLessEqual(set(row.figures), set(found))
                self.assertLessEqual(set(row.shared), set(row.figures))
                for figure, limit, _ in row.limits:
                    self.assertIn(figure, found)
                    self.assertIn(limit, known)


class LimitTest(unittest.TestCase):
    def test_bytes_become_rows(self):
        found = compare.in_rows({"gather_rows_per_second": 1e7, "unix_bytes_per_second": 512, "tcp_bytes_per_second": 256}, 256)
        self.assertEqual(found, {"gather_ns": 100, "unix_rows_per_second": 2, "tcp_rows_per_second": 1})

    def test_limits_of_something_else_have_no_rows(self):
        self.assertEqual(compare.in_rows({"memcpy_ms": 3}, 256), {})


class OneFactTest(unittest.TestCase):
    def test_the_peer_reads_the_files_that_we_write(self):
        with open(os.path.join(ROOT, "benchmarks", "key_file.h"), encoding="utf-8") as file:
            header = file.read()
        magic = int(re.search(r"kKeyFileMagic = (0x[0-9a-f]+)ULL", header).group(1), 16)
        words = int(re.search(r"kKeyFileHeaderWords = (\d+)", header).group(1))
        self.assertEqual((torch_rpc.KEY_FILE_MAGIC, torch_rpc.KEY_FILE_WORDS), (magic, words))

    def test_a_folder_that_no_unix_socket_fits_into(self):
        with open(os.path.join(ROOT, "net", "endpoints.h"), encoding="utf-8") as file:
            longest = int(re.search(r"kUnixPathMax = (\d+)", file.read()).group(1))
        self.assertGreater(len(ours.TCP_ONLY), longest)


if __name__ == "__main__":
    unittest.main()
