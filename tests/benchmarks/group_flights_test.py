#!/usr/bin/env python3
"""Unit test of the pure parts of benchmarks/group_flights.py: what the logged steps say."""

import array
import os
import sys
import unittest

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "benchmarks"))
from group_flights import added, checkpoint, cost, steps  # noqa: E402

MS = 1_000_000


def step(number, applied_ms, minibatches=1, committed=True):
    """It takes 8 ms: 5 to compute, 2 to commit, 1 to apply."""
    end = applied_ms * MS
    return steps.Step(number, minibatches, end - 8 * MS, end - 3 * MS, end - MS if committed else 0, end)


class ParseTest(unittest.TestCase):
    def test_a_record_that_is_not_whole_is_left_out(self):
        data = array.array("q", range(12)).tobytes()
        self.assertEqual(steps.parse(data), [steps.Step(*range(6)), steps.Step(*range(6, 12))])
        self.assertEqual(steps.parse(data[:-1]), [steps.Step(*range(6))])


class StepsTest(unittest.TestCase):
    def test_periods_are_between_steps_that_follow_one_another(self):
        log = [step(0, 5, committed=False), step(1, 10), step(2, 20), step(3, 25, committed=False), step(3, 50), step(5, 60)]
        self.assertEqual(steps.periods_ms(log), [10, 30])

    def test_the_mean_is_over_the_commits_of_a_window(self):
        log = [step(number, 10 * number) for number in range(1, 8)] + [step(8, 200)]
        self.assertEqual(steps.mean_ms(log, 15 * MS, 75 * MS), 10)
        self.assertIsNone(steps.mean_ms(log, 15 * MS, 25 * MS))

    def test_the_first_commit_after_a_moment(self):
        members = [[step(1, 11), step(2, 21)], [step(1, 12), step(2, 19, committed=False), step(2, 22)]]
        self.assertEqual(steps.first_commit_after(members, 11 * MS), 20 * MS)
        self.assertIsNone(steps.first_commit_after(members, 30 * MS))

    def test_a_gap_counts_if_it_ends_after_the_moment(self):
        log = [step(1, 10), step(2, 40), step(3, 50), step(4, 65), step(5, 165)]
        self.assertEqual(steps.gap_ms([log], 42 * MS, 100 * MS), 15)
        self.assertEqual(steps.gap_ms([log], 30 * MS, 100 * MS), 30)

    def test_a_step_that_no_member_has_is_missing(self):
        self.assertTrue(steps.numbers_once([[step(1, 10), step(2, 20)], [step(2, 20), step(3, 30)]]))
        self.assertFalse(steps.numbers_once([[step(1, 10)], [step(3, 30)]]))


class FiguresTest(unittest.TestCase):
    def test_a_newcomer_takes_part_with_its_first_minibatch(self):
        log = [steps.Step(0, 0, 7, 0, 0, 0), step(4, 30, minibatches=0), step(5, 40), step(6, 50)]
        self.assertEqual(added.joined(log), (7, 32 * MS))
        self.assertIsNone(added.joined(log[:2]))
        self.assertIsNone(added.joined([]))

    def test_the_pause_is_what_the_longest_step_lasted_beyond_the_median(self):
        ends = [10, 20, 30, 70, 80, 95, 105, 115, 125]
        log = [step(number + 1, end) for number, end in enumerate(ends)]
        self.assertEqual(checkpoint.pauses(log, [2, 6, 8]), [(30, 35), (0, 0)])

    def test_without_peer_and_without_memory_there_are_no_ratios(self):
        disk = {"step_ms": 4, "compute_ms": 1, "wait_ms": 2, "turn_ms": 1}
        alone = {"memory": None, "disk": disk, "sum_ms": 0.5, "sync_ms": 2, "peer": None}
        one = cost.summed(8, [alone, alone | {"memory": disk | {"step_ms": 2}, "peer": {"quorum_ms": 5}}])
        self.assertEqual((one["peer_ratio"]["median"], one["peer_ratio"]["n"], one["memory_ms"]["n"], one["disk_ms"]["n"]), (2.5, 1, 1, 2))


if __name__ == "__main__":
    unittest.main()
