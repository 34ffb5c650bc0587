"""The `muster` executable of the wheel, and the console script of its name."""

import os
import sys


def executable() -> str:
    """The path of the executable."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "muster")


def main() -> None:
    program = executable()
    # With it, `muster train` runs trainers in Python.
    os.environ.setdefault("MUSTER_PYTHON", sys.executable)
    os.execv(program, [program, *sys.argv[1:]])
