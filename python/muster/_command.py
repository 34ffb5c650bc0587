"""The console script `muster`: the executable that the wheel has."""

import os
import sys


def main() -> None:
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "muster")
    os.execv(program, [program, *sys.argv[1:]])
