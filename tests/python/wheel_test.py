#!/usr/bin/env python3
"""Builds the wheel, installs it into a fresh virtual environment, and runs the tests of Python's jobs with it there.

With --torch or --tensorflow, it runs those of PyTorch or of TensorFlow in another one, which sees what benchmarks/peers/install has
installed.

Skipped, visibly, where pip cannot have what the build needs, or where there is no such peer. Where pip cannot have pyarrow, the tests
of Parquet and CSV are left out, and the last line says so. Python's standard library only.
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


PEERS = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "muster-peers")
# What an environment tests; with None, the wheel and NumPy alone.
TESTS = {
    None: ("job_test.py", "group_test.py", "run_test.py", "readme_test.py", "tutorial_test.py", "image_test.py", "abuse_test.py"),
    "torch": ("torch_parts_test.py", "torch_test.py", "ddp_test.py", "torch_examples_test.py"),
    "tensorflow": ("tensorflow_test.py",),
}


def peer_path(peer):
    """The folder of packages with PyTorch or TensorFlow. Skips if there is none for this Python."""
    python = os.path.join(PEERS, peer, "bin", "python")
    folder = site_packages(python) if os.path.exists(python) else ""
    if f"python{sys.version_info[0]}.{sys.version_info[1]}" not in folder.split(os.sep) or not os.path.isdir(os.path.join(folder, peer)):
        skip(f"there is no {peer} of this Python in {PEERS}: run benchmarks/peers/install {peer}")
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
    check_stubs(venv, site_packages(python), output)
    return python, wheel


def has_pyarrow(output, python):
    """Installs it into the environment."""
    pip = [os.path.join(output, "venv", "bin", "pip"), "--python", python, "install", "--quiet", "--only-binary=:all:"]
    return subprocess.run([*pip, "pyarrow"], check=False).returncode == 0


def check_stubs(venv, packages, output):
    """The types in the clone are those of the module."""
    written = os.path.join(output, "_muster.pyi")
    generator = [os.path.join(venv, "bin", "python"), "-m", "nanobind.stubgen", "--quiet", "-m", "muster._muster", "-o", written]
    subprocess.run(generator, env=dict(os.environ, PYTHONPATH=packages, PYTHONDONTWRITEBYTECODE="1"), check=True)
    own = os.path.join(ROOT, "python", "muster", "_muster.pyi")
    with open(own, encoding="utf-8") as file, open(written, encoding="utf-8") as other:
        if file.read() != other.read():
            sys.exit(f"{own} is not what nanobind's generator writes: copy {written}")


def site_packages(python):
    return subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="Example: wheel_test.py --build build/dev --output build/dev/wheel")
    parser.add_argument("--build", required=True, type=os.path.abspath, help="the build folder of a preset")
    parser.add_argument("--output", required=True, type=os.path.abspath, help="where the wheel and the environments go")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--torch", dest="peer", action="store_const", const="torch", help="the tests of PyTorch instead of the others")
    kinds.add_argument("--tensorflow", dest="peer", action="store_const", const="tensorflow", help="those of TensorFlow, and an example with JAX")
    options = parser.parse_args()
    folder = peer_path(options.peer) if options.peer else ""
    python, wheel = installed(options.build, options.output, options.peer or "fresh")
    if folder:
        with open(os.path.join(site_packages(python), "peer.pth"), "w", encoding="utf-8") as file:
            print(folder, file=file)
    with_pyarrow = not options.peer and has_pyarrow(options.output, python)
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", MUSTER_WHEEL=wheel)
    for test in (*TESTS[options.peer], *(("source_test.py", "output_test.py") if with_pyarrow else ())):
        subprocess.run([python, os.path.join(HERE, test), "-v"], env=environment, check=True)
    if not options.peer and not with_pyarrow:
        print("source_test.py and output_test.py were left out: pip could not install pyarrow")


if __name__ == "__main__":
    main()
