#!/usr/bin/env python3
"""A synchronous group: its figures, what each process does, and why one has no place."""

from dashboard_case import DashboardCase, main
from looks_test import LOW_CONTRAST, TOO_WIDE

ROWS = "return [...document.querySelectorAll('#group-rows tr')].map((row) => [...row.cells].map((cell) => cell.textContent));"


class GroupTest(DashboardCase):
    GROUP = True

    def show(self):
        super().show()
        self.browser.until("document.getElementById('group').checkVisibility()")

    def test_the_group_and_its_processes(self):
        self.show()
        self.assertEqual(self.browser.text("#group-figures").split("\n"),
                         ["Step", "1,204", "Members", "2 (of 1 to 2)", "Records of a step", "256", "Attempt", "7",
                          "Checkpoint", "of step 1,100"])
        self.assertEqual(self.browser.text("#group thead").strip().split("\t"),
                         ["Worker", "Standing", "Phase", "Share", "A minibatch", "Step", "Rank"])
        self.assertEqual(self.browser.script(ROWS),
                         [["worker-0", "member", "computing", "3 of 8", "12 ms", "1,204", "0"],
                          ["worker-1", "member", "reducing", "5 of 8", "12 ms", "1,204", "1"],
                          ["worker-2", "waiting", "idle", "–", "–", "–", "–"]])
        self.assertEqual(self.browser.text("#group-waits"), "worker-2: the group has all of its 2 members (spec.group.maxMembers)")
        self.assertTrue(self.browser.script("return document.getElementById('group-link').checkVisibility()"))
        self.assert_quiet()

    def test_looks_like_the_rest(self):
        self.show()
        for dark in (False, True):
            for width in (360, 768, 1280):
                self.browser.look(dark=dark, width=width, height=740)
                with self.subTest(dark=dark, width=width):
                    self.browser.until("innerWidth === arguments[0]", width)
                    self.browser.until(f"((() => {{{TOO_WIDE}}})()).length === 0")
                    self.assertEqual(self.browser.script(LOW_CONTRAST), [])


class NoGroupTest(DashboardCase):
    def test_a_job_without_a_group_shows_nothing_of_it(self):
        self.show()
        for part in ("group", "group-link"):
            self.assertFalse(self.browser.script("return document.getElementById(arguments[0]).checkVisibility()", part))


if __name__ == "__main__":
    main()
