"""The Dockerfile of a trainer in Python, followed step by step in a folder instead of an image. It does without what Debian's packages do."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXAMPLES = os.path.join(ROOT, "examples", "python")
WHEEL = os.environ.get("MUSTER_WHEEL", "")


def steps(name):
    """[(instruction, rest)] of a Dockerfile."""
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        text = re.sub(r"^#.*\n", "", file.read(), flags=re.M).replace("\\\n", " ")
    return re.findall(r"^([A-Z]+) +(.*)$", text, re.M)


class ImageTest(unittest.TestCase):
    def setUp(self):
        self.root = os.path.realpath(tempfile.mkdtemp(prefix="muster-image-"))
        self.addCleanup(shutil.rmtree, self.root)

    def inside(self, text):
        """Absolute paths of the image are below the folder."""
        return re.sub(r"(?<![\w.*])/(opt|wheels|app)\b", rf"{self.root}/\1", text)

    def copy(self, rest):
        source, to = rest.split()
        sources = [WHEEL] if source == "muster_train-*.whl" else glob.glob(os.path.join(EXAMPLES, source))
        self.assertTrue(sources, f"COPY {rest}: nothing is there")
        os.makedirs(self.inside(to), exist_ok=True)
        for one in sources:
            shutil.copy(one, self.inside(to))

    def test_the_steps_make_an_image_that_has_muster(self):
        done, environment = [], {}
        for instruction, rest in steps("examples/python/Dockerfile"):
            if instruction == "COPY":
                self.copy(rest)
            elif instruction == "RUN" and "/opt/" in rest:
                subprocess.run(["bash", "-ec", self.inside(rest)], check=True, stdout=subprocess.DEVNULL, env=os.environ | environment)
                done.append(rest)
            elif instruction == "ENV":
                environment = dict([self.inside(rest).split("=", 1)])
        self.assertEqual(len(done), 1)
        version = subprocess.run(["muster", "version"], env=environment, capture_output=True, text=True, check=True, cwd="/",
                                 executable=shutil.which("muster", path=environment["PATH"]))
        self.assertRegex(version.stdout, r"\d+\.\d+\.\d+")
        self.assertEqual(os.path.dirname(shutil.which("muster", path=environment["PATH"])), f"{self.root}/opt/trainer/bin")
        subprocess.run(["python3", "-c", "import ast, sys, muster; ast.parse(open(sys.argv[1]).read())", f"{self.root}/app/tutorial.py"],
                       check=True, env=environment, executable=f"{self.root}/opt/trainer/bin/python3")

    def test_it_runs_as_the_image_of_muster_does(self):
        mine, other = (dict(steps(name)) for name in ("examples/python/Dockerfile", "Dockerfile"))
        for instruction in ("FROM", "USER", "WORKDIR", "STOPSIGNAL"):
            self.assertEqual(mine[instruction], other[instruction], instruction)
        self.assertEqual(json.loads(mine["ENTRYPOINT"]), json.loads(other["ENTRYPOINT"]))


if __name__ == "__main__":
    if not WHEEL:
        print("image_test.py: MUSTER_WHEEL names no wheel\nskipped=1")
        sys.exit(0)
    unittest.main()
