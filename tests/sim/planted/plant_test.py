#!/usr/bin/env python3
"""Copies of sources have the rule and the bug in one place, the lines of the source, and no bug that has lost its rule."""

import unittest

import plant

SOURCE = """int F(int a,
      int b) {
  if (a < b &&
      b > 0) {
    Say(a);
  }
  return a;
}
"""


class PlantTest(unittest.TestCase):
    def planted(self, **table):
        copy = plant.plant("f.cc", SOURCE, table)
        include, line, *rest = copy.splitlines()
        self.assertTrue(include.startswith("#include"))
        self.assertEqual(line, '#line 1 "f.cc"')
        self.assertEqual(len(rest), len(SOURCE.splitlines()))
        return "\n".join(rest)

    def test_an_expression_has_both_texts(self):
        self.assertIn('if ((::muster::IsPlanted("late") ? (true) : (a < b && b > 0))', self.planted(late=["a < b && b > 0", "true"]))

    def test_a_statement_may_vanish(self):
        self.assertIn('{ if (::muster::IsPlanted("mute")) {  } else { Say(a); } }', self.planted(mute=["Say(a);", ""]))

    def test_backticks_choose_a_part_of_the_text(self):
        self.assertIn('return (::muster::IsPlanted("zero") ? (0) : (a));', self.planted(zero=["return `a`;", "0"]))

    def test_two_bugs_share_a_place_and_one_has_two(self):
        copy = self.planted(one=[["Say(a);", "Say(1);"], ["return `a`;", "1"]], two=["Say(a);", "Say(2);"])
        for text in ("Say(a);", "Say(1);", "Say(2);", "? (1) : (a)"):
            self.assertIn(text, copy)

    def test_text_is_always_replaced(self):
        copy = self.planted(text=["Say(a);", "Say(3);"])
        self.assertIn("    Say(3);", copy)
        self.assertNotIn("IsPlanted", copy)

    def test_a_rule_that_is_gone_or_not_unique_is_reported(self):
        for rule in ("a > b", "b"):
            with self.assertRaisesRegex(plant.Misplaced, "not once, what late replaces"):
                self.planted(late=[rule, "true"])

    def test_bugs_do_not_overlap(self):
        with self.assertRaisesRegex(plant.Misplaced, "overlap"):
            self.planted(one=["a < b && b > 0", "true"], two=["b > 0", "true"])


if __name__ == "__main__":
    unittest.main()
