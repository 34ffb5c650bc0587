#!/usr/bin/env python3
"""Datasets that are topics: their figures, their trouble, what is lost, and how much of it is on the page."""

from dashboard_case import DashboardCase, main
from looks_test import LOW_CONTRAST, TOO_WIDE

CLICKS = "#topics-list > li:nth-child(1)"
PURCHASES = "#topics-list > li:nth-child(2)"


class TopicsCase(DashboardCase):
    def show(self):
        super().show()
        self.browser.until("document.getElementById('topics-list').childElementCount === 2")

    def rows(self, topic):
        """The texts of the rows' cells, as the table has them."""
        rows = "return [...document.querySelectorAll(`${arguments[0]} tbody tr`)].map((row) => [...row.cells].map((cell) => cell.textContent));"
        return self.browser.script(rows, topic)


class FewPartitionsTest(TopicsCase):
    TOPIC_PARTITIONS = 3

    def test_figures_of_a_topic_and_of_each_partition(self):
        self.show()
        head = self.browser.text(f"{CLICKS} .panel-head")
        self.assertEqual(head.split("\n"), ["clicks topic page-clicks", "open"])
        figures = self.browser.text(f"{CLICKS} dl").split("\n")
        self.assertEqual(figures, ["Lag", "7,404 offsets", "Lag time", "3 min 45 s", "Held back by open transactions", "40 offsets",
                                   "Delay, median", "448 ms", "Delay, p99", "2.6 s", "Partitions", "3", "Lost", "1,200 offsets"])
        self.assertEqual(self.browser.text(f"{PURCHASES} dl").split("\n"), ["Lag", "unknown", "Lag time", "unknown", "Partitions", "1"])
        heads = self.browser.text(f"{CLICKS} thead").strip().split("\t")
        self.assertEqual(heads, ["Partition", "Committed", "Cut", "End of the log", "Lag", "Lag time", "Open ranges", "Lost"])
        rows = self.rows(CLICKS)
        self.assertEqual([row[0] for row in rows], ["0", "1", "2"])
        self.assertEqual(rows[2], ["2", "1,002,000", "1,003,851", "1,005,702", "3,702", "3 min 45 s", "4", "0"])
        # They go on by themselves.
        committed = f"document.querySelector('{CLICKS} tbody td').textContent"
        self.browser.until(f"{committed} !== arguments[0]", rows[0][1])
        self.assertTrue(self.browser.script(f"return document.querySelector('{CLICKS} .more').hidden"))
        self.assert_quiet()

    def test_trouble_is_shown_where_there_is_some_and_what_is_not_known_is_left_open(self):
        self.show()
        self.assertEqual(
            self.browser.text(f"{PURCHASES} .note"),
            "The topic cannot be read now: no broker of kafka-1:9092 answers: connection refused",
        )
        seen = "return [...arguments].map((topic) => document.querySelector(`${topic} .note`).checkVisibility())"
        self.assertEqual(self.browser.script(seen, CLICKS, PURCHASES), [False, True])
        self.assertIn("closed", self.browser.text(f"{PURCHASES} .panel-head"))
        self.assertEqual(self.rows(PURCHASES), [["0", "4,800", "5,000", "–", "–", "–", "1", "0"]])

    def test_what_is_lost_stands_out(self):
        self.show()
        self.assertEqual(self.rows(CLICKS)[1][7], "1,200")
        back = (
            "return [...document.querySelectorAll(`${arguments[0]} tbody td:last-child`)]"
            ".map((cell) => getComputedStyle(cell).backgroundColor === 'rgba(0, 0, 0, 0)')"
        )
        self.assertEqual(self.browser.script(back, CLICKS), [True, False, True])
        # In the figures of the topic, too: its row may be one of those that are not shown.
        colours = "return ['Lost', 'Lag'].map((name) => getComputedStyle(document.querySelector(`#topics-list [data-key=${name}] dd`)).color)"
        lost, lag = self.browser.script(colours)
        self.assertNotEqual(lost, lag)

    def test_looks_like_the_rest(self):
        self.show()
        for dark in (False, True):
            for width in (360, 420, 768, 1280):
                self.browser.look(dark=dark, width=width, height=740)
                with self.subTest(dark=dark, width=width):
                    self.browser.until("innerWidth === arguments[0]", width)
                    # Charts are drawn again after the window has its new size.
                    self.browser.until(f"((() => {{{TOO_WIDE}}})()).length === 0")
                    self.assertLessEqual(self.browser.script("return document.documentElement.scrollWidth"), width)
                    for stale in (True, False):
                        self.browser.script("document.body.classList.toggle('stale', arguments[0])", stale)
                        self.assertEqual(self.browser.script(LOW_CONTRAST), [])
        # On a phone nothing has to be scrolled sideways, and every figure has its name beside it.
        self.browser.look(width=420, height=740)
        sideways = ("return [...document.querySelectorAll('.offsets-box')].filter((box) => box.offsetParent !== null)"
                    ".map((box) => box.scrollWidth - box.clientWidth)")  # a group's table is of this kind, and hidden
        self.assertEqual(self.browser.script(sideways), [0, 0])
        names = self.browser.script(
            "return [...document.querySelectorAll(`${arguments[0]} tbody tr:first-child > *`)]"
            ".map((cell) => getComputedStyle(cell, '::before').content.replaceAll('\"', '').trim())",
            CLICKS,
        )
        self.assertEqual(names, ["Partition", "Committed", "Cut", "End of the log", "Lag", "Lag time", "Open ranges", "Lost"])
        # Tables that can be told apart, boxes that can be scrolled by keyboard.
        names = "return [...document.querySelectorAll(arguments[0])].map((one) => one.getAttribute('aria-label') || one.textContent)"
        self.assertEqual(self.browser.script(names, "#topics caption"), [f"Partitions of {name}, in offsets" for name in ("clicks", "purchases")])
        self.assertEqual(self.browser.script(names, "#topics [role=region][tabindex='0']"), ["Partitions of clicks", "Partitions of purchases"])

    def test_is_asked_for_again_and_says_what_it_cannot_have(self):
        self.show()
        self.browser.script(
            "const real = window.fetch; window.fetch = (path, ...more) => String(path).endsWith('/api/v1/datasets')"
            "  ? Promise.resolve(new Response(JSON.stringify({ detail: 'the master is away' }),"
            "    { status: 503, headers: { 'Content-Type': 'application/problem+json' } })) : real(path, ...more);"
            "window.repair = () => { window.fetch = real; };"
        )
        self.browser.until("document.getElementById('topics-note').innerText.includes('the master is away')")
        self.assertEqual(len(self.rows(CLICKS)), 3)
        self.browser.script("window.repair()")
        self.browser.until("document.getElementById('topics-note').hidden", timeout_s=20)


class ManyPartitionsTest(TopicsCase):
    TOPIC_PARTITIONS = 2000

    def test_those_that_lag_most_are_shown_and_all_when_asked_for(self):
        self.show()
        rows = self.rows(CLICKS)
        self.assertEqual([row[0] for row in rows], [str(number) for number in range(1999, 1949, -1)])
        self.assertEqual(
            self.browser.text(f"{CLICKS} .more .hint"),
            "The table has the 50 partitions with the largest lag. There are 1,950 more, 1 of them with lost offsets.",
        )
        self.assertIn("1,200 offsets", self.browser.text(f"{CLICKS} dl"))
        self.assertLess(self.browser.script("return document.querySelectorAll('#topics *').length"), 1000)
        button = f"{CLICKS} .more button"
        self.assertEqual(self.browser.text(button), "Show all 2,000")
        self.browser.click(button)
        self.browser.until(f"document.querySelectorAll('{CLICKS} tbody tr').length === 2000")
        self.assertEqual(self.browser.text(f"{CLICKS} .more .hint"), "")
        self.assertEqual([row[0] for row in self.rows(CLICKS)], [str(number) for number in range(2000)])
        self.browser.click(button)
        self.browser.until(f"document.querySelectorAll('{CLICKS} tbody tr').length === 50")
        self.assertEqual(self.rows(CLICKS)[0][0], "1999")
        self.assert_quiet()


class FilesOnlyTest(DashboardCase):
    def test_nothing_is_said_of_topics_when_there_is_none(self):
        self.show()
        self.browser.until("document.getElementById('shards-epoch').options.length > 0")
        for part in ("topics", "topics-link"):
            self.assertTrue(self.browser.script("return document.getElementById(arguments[0]).hidden", part), part)
        self.assertNotIn("Topics", self.browser.text("body"))
        self.assert_quiet()


if __name__ == "__main__":
    main()
