#!/usr/bin/env python3
"""Builds the wheel, installs it into a fresh virtual environment, and runs the tests of Python's jobs with it there.

Skipped, visibly, where pip cannot have what the build needs. Python's standard library only.
"""

import argparse
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def skip(why):
    print(f"skipped=1: {why}")
    sys.exit(0)


def installed(build, output):
    """The python of a fresh virtual environment with the wheel. Skips if pip has no network."""
    venv = os.path.join(output, "venv")
    made = subprocess.run([os.path.join(ROOT, "scripts", "wheel"), "--build", build, "--output", output], stdout=subprocess.PIPE, text=True, check=False)
    if made.returncode != 0:
        if not os.path.exists(os.path.join(venv, "complete")):
            skip("pip could not install nanobind and scikit-build-core")
        sys.exit("the wheel was not built")
    fresh = os.path.join(output, "fresh")
    shutil.rmtree(fresh, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", fresh], check=True)
    python = os.path.join(fresh, "bin", "python")
    pip = [os.path.join(venv, "bin", "pip"), "--python", python, "install", "--quiet"]
    if subprocess.run([*pip, "numpy"], check=False).returncode != 0:
        skip("pip could not install NumPy")
    subprocess.run([*pip, "--no-index", made.stdout.strip()], check=True)
    return python


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="Example: wheel_test.py --build build/dev --output build/dev/wheel")
    parser.add_argument("--build", required=True, type=os.path.abspath, help="the build folder of a preset")
    parser.add_argument("--output", required=True, type=os.path.abspath, help="where the wheel and the environments go")
    options = parser.parse_args()
    python = installed(options.build, options.output)
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    for test in ("job_test.py", "run_test.py", "tutorial_test.py"):
        subprocess.run([python, os.path.join(HERE, test), "-v"], env=environment, check=True)


if __name__ == "__main__":
    main()
