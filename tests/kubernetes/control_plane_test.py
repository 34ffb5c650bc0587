"""Tests the cache of control_plane/control_plane.py, without building anything."""

import os
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "control_plane"))
import control_plane


class CacheTest(unittest.TestCase):
    def test_a_build_removes_programs_that_nobody_used_for_a_day(self):
        with tempfile.TemporaryDirectory(prefix="muster-cache-") as cache:
            os.environ["XDG_CACHE_HOME"] = cache
            program = control_plane.cached_program()
            programs = os.path.dirname(os.path.dirname(program))
            old = time.time() - control_plane.KEPT_SECONDS - 60
            for name, used in ((os.path.basename(os.path.dirname(program)), old), ("0123456789abcdef", old), ("fedcba9876543210", None), ("notes", old)):
                os.makedirs(os.path.join(programs, name))
                with open(os.path.join(programs, name, "control-plane"), "wb"):
                    pass
                if used:
                    os.utime(os.path.join(programs, name), (used, used))
            self.assertEqual(control_plane.build(), (program, 0.0))
            self.assertEqual(sorted(os.listdir(programs)), sorted([os.path.basename(os.path.dirname(program)), "fedcba9876543210", "notes"]))
            self.assertGreater(os.stat(os.path.dirname(program)).st_mtime, old + 60, "it is not marked as used")


if __name__ == "__main__":
    unittest.main()
