#!/usr/bin/env python3
"""Builds the wheel, installs it into a fresh virtual environment, and runs the tests of Python's jobs with it there.

With --torch, it runs those of PyTorch in another one, which sees the PyTorch that benchmarks/peers/install has installed.

Skipped, visibly, where pip cannot have what the build needs, or where there is no such PyTorch. Python's standard library only.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# Systems of 2022 have glibc 2.35.
LOADS_ON = re.compile(r"manylinux_2_(2\d|3[0-5])_\w+\.whl$")


def skip(why):
    print(f"skipped=1: {why}")
    sys.exit(0)


PEER = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "muster-peers", "torch")


def torch_path():
    """The folder of packages with PyTorch. Skips if there is none for this Python."""
    asked = subprocess.run([os.path.join(PEER, "bin", "python"), "-c", "import torch; print(*torch.__path__)"], stdout=subprocess.PIPE, text=True,
                           check=False) if os.path.exists(os.path.join(PEER, "bin", "python")) else None
    folder = os.path.dirname(asked.stdout.strip()) if asked and asked.returncode == 0 else ""
    if f"python{sys.version_info[0]}.{sys.version_info[1]}" not in folder.split(os.sep):
        skip(f"there is no PyTorch of this Python in {PEER}: run benchmarks/peers/install torch")
    return folder


def installed(build, output, name):
    """The python of a fresh virtual environment with the wheel. Skips if pip has no network."""
    venv = os.path.join(output, "venv")
    made = subprocess.run([os.path.join(ROOT, "scripts", "wheel"), "--build", build, "--output", output], stdout=subprocess.PIPE, text=True, check=False)
    if made.returncode != 0:
        if not os.path.exists(os.path.join(venv, "complete")):
            skip("pip could not install nanobind and scikit-build-core")
        sys.exit("the wheel was not built")
    wheel = made.stdout.strip()
    if not LOADS_ON.search(wheel):
        sys.exit(f"{wheel} needs a glibc after 2.35: a new symbol came in (auditwheel show names it)")
    fresh = os.path.join(output, name)
    shutil.rmtree(fresh, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", fresh], check=True)
    python = os.path.join(fresh, "bin", "python")
    pip = [os.path.join(venv, "bin", "pip"), "--python", python, "install", "--quiet"]
    if subprocess.run([*pip, "numpy"], check=False).returncode != 0:
        skip("pip could not install NumPy")
    subprocess.run([*pip, "--no-index", wheel], check=True)
    return python


def site_packages(python):
    return subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="Example: wheel_test.py --build build/dev --output build/dev/wheel")
    parser.add_argument("--build", required=True, type=os.path.abspath, help="the build folder of a preset")
    parser.add_argument("--output", required=True, type=os.path.abspath, help="where the wheel and the environments go")
    parser.add_argument("--torch", action="store_true", help="the tests of PyTorch instead of the others")
    options = parser.parse_args()
    tests = ("torch_test.py", "ddp_test.py") if options.torch else ("job_test.py", "group_test.py", "run_test.py", "readme_test.py", "tutorial_test.py")
    folder = torch_path() if options.torch else ""
    python = installed(options.build, options.output, "torch" if options.torch else "fresh")
    if folder:
        with open(os.path.join(site_packages(python), "peer.pth"), "w", encoding="utf-8") as file:
            print(folder, file=file)
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    for test in tests:
        subprocess.run([python, os.path.join(HERE, test), "-v"], env=environment, check=True)


if __name__ == "__main__":
    main()
