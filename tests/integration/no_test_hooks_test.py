#!/usr/bin/env python3
"""Users' programs cannot be told to crash, to fail or to break a rule: a release build refuses, and says why."""

import argparse
import os
import subprocess
import sys
import unittest

options = None


class NoTestHooksTest(unittest.TestCase):
    def refused(self, command, environment=None):
        ended = subprocess.run(command, env=os.environ | (environment or {}), text=True, capture_output=True, check=False,
                               timeout=30)
        self.assertEqual(ended.returncode, 2, ended.stdout + ended.stderr)
        return ended.stdout + ended.stderr

    def test_no_failpoints(self):
        for actions in ("list", "journal.before-write=crash"):
            self.assertIn("this build has none", self.refused([options.muster], {"MUSTER_FAILPOINTS": actions}))

    def test_no_name_of_a_failpoint_is_left(self):
        for program in (options.muster, options.trainer):
            with open(program, "rb") as file:
                content = file.read()
            for name in (b"journal.before-write", b"exchange.after-reply", b"no-reverify"):
                self.assertNotIn(name, content, program)

    def test_no_planted_bugs(self):
        master = ["master", "--job", "job.yaml", "--listen", "127.0.0.1:1", "--run-id", "r"]
        for verb in (["run", "job.yaml"], ["verify"], master):
            self.assertIn("this build has none", self.refused([options.muster, *verb, "--planted-bug", "no-reverify"]))


def main():
    global options
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--muster", required=True)
    parser.add_argument("--trainer", required=True)
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
