"""gpu_kernels.cc is what gpu_kernels.py makes of gpu_loops.h."""

import os
import shutil
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "collectives", "backends"))
import gpu_kernels  # noqa: E402


class GpuKernelsTest(unittest.TestCase):
    @unittest.skipUnless(shutil.which("clang++-19"), "clang++-19 is missing")
    def test_the_text_belongs_to_the_loops(self):
        with open(os.path.join(gpu_kernels.FOLDER, "gpu_kernels.cc"), encoding="utf-8") as file:
            self.assertEqual(file.read(), gpu_kernels.text(), "run collectives/backends/gpu_kernels.py")


if __name__ == "__main__":
    unittest.main()
