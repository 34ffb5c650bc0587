"""Tests scripts/lib/disk_space.py: what a run needs, on which file system, and what it says if that is not there."""

import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))
import disk_space


class DiskSpaceTest(unittest.TestCase):
    def test_what_a_build_folder_has_is_not_needed_again(self):
        def needed(has):
            return dict(disk_space.needs("ci", True, lambda folder: has if folder == "build/dev" else 0))["build/dev"]
        self.assertEqual(needed(0), disk_space.BUILDS["ci"]["dev"])
        self.assertAlmostEqual(needed(1), disk_space.BUILDS["ci"]["dev"] - 1)
        self.assertEqual(needed(99), 0)

    def test_a_control_plane_is_counted_unless_it_is_there_or_not_wanted(self):
        def total(level, has):
            return sum(gb for _, gb in disk_space.needs(level, has, lambda folder: 0))
        self.assertAlmostEqual(total("ci", False), total("ci", True) + disk_space.CONTROL_PLANE)
        self.assertAlmostEqual(total("default", False), total("default", True))

    def test_pytorch_is_counted_unless_it_is_there_or_not_wanted(self):
        with tempfile.TemporaryDirectory(prefix="muster-disk-") as folder, unittest.mock.patch.dict(os.environ, XDG_CACHE_HOME=folder):
            def total(level):
                return sum(gb for _, gb in disk_space.needs(level, True, lambda folder: 0))
            missing = total("ci"), total("default")
            os.makedirs(os.path.join(folder, "muster-peers", "torch"))
            self.assertAlmostEqual(missing[0], total("ci") + disk_space.PYTORCH)
            self.assertAlmostEqual(missing[1], total("default"))

    def test_folders_of_one_file_system_share_its_room(self):
        devices = {"build/dev": 1, "build/tsan": 1, "/tmp": 2}
        found = disk_space.by_file_system([("build/dev", 4), ("/tmp", 1), ("build/tsan", 3)], devices.get, {"build/dev": 6, "/tmp": 9}.get)
        self.assertEqual(found, [(["build/dev", "build/tsan"], 7, 6), (["/tmp"], 1, 9)])

    def test_too_little_has_an_exit_code_of_its_own(self):
        with tempfile.TemporaryDirectory(prefix="muster-disk-") as folder:
            program = ("import sys; sys.path.insert(0, sys.argv.pop(1)); import disk_space; disk_space.free_gb = lambda folder: {}; "
                       "sys.exit(disk_space.main())")
            for free, code in ((0.25, disk_space.EXIT_FULL), (1000, 0)):
                run = subprocess.run([sys.executable, "-c", program.format(free), os.path.join(ROOT, "scripts", "lib"), "default"], cwd=ROOT,
                                     env=dict(os.environ, TMPDIR=folder), capture_output=True, text=True, check=False)
                self.assertEqual(run.returncode, code, run.stderr)
                self.assertEqual("not enough disk" in run.stderr and "0.2 GB free" in run.stderr and folder in run.stderr, code != 0, run.stderr)


if __name__ == "__main__":
    unittest.main()
