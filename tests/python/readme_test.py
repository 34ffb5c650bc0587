"""The worker that README.md shows first, with the installed wheel: run it with the Python that has it (wheel_test.py does)."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import job  # noqa: E402


class ReadmeTest(unittest.TestCase):
    def test_the_first_worker_learns(self):
        folder = os.path.realpath(tempfile.mkdtemp(prefix="muster-python-readme-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        with open(os.path.join(job.ROOT, "README.md"), encoding="utf-8") as file:
            text = file.read()
        with open(os.path.join(folder, "worker.py"), "w", encoding="utf-8") as file:
            file.write(re.search(r"^```py\n(.*?)^```$", text, re.M | re.S).group(1))
        for part in range(4):
            with open(os.path.join(folder, f"data-{part}.txt"), "w", encoding="ascii") as file:
                file.writelines(f"{number % 100} {number % 100 / 100}\n" for number in range(part * 5000, (part + 1) * 5000))
        words = re.search(r"`muster (train worker\.py [^`]*)`", text).group(1).replace("'", "").split()
        environment = dict(os.environ, PATH=os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"])
        run = subprocess.run([job.MUSTER, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=200, check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        with open(os.path.join(folder, "state", "summary.json"), encoding="utf-8") as file:
            epochs = json.load(file)["datasets"][0]["epochs"]
        self.assertEqual([epoch["records_committed"] for epoch in epochs], [20_000] * 3)
        self.assertLess(epochs[-1]["metrics"]["loss"], 0.01, "untrained: 0.16")


if __name__ == "__main__":
    unittest.main()
