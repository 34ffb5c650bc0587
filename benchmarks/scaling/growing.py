#!/usr/bin/env python3
"""A trainer whose memory grows: runs a command below itself, and holds more and more memory meanwhile.

Simulates a cache in the trainer. Each start begins with an empty cache, so a restart with a limit above --mib is enough.

Example, in a job file: command: [growing.py, --mib, "80", --mib-per-second, "1.5", --, ./trainer]
"""

import argparse
import ctypes
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG = 1
PIECES_PER_SECOND = 4


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=float, required=True, help="how much it holds in the end")
    parser.add_argument("--mib-per-second", type=float, required=True)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()

    libc = ctypes.CDLL(None)
    child = subprocess.Popen(options.command, preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _: child.send_signal(got))
    held, began = [], time.monotonic()
    while child.poll() is None:
        due = min(options.mib, (time.monotonic() - began) * options.mib_per_second)
        # Written to, or the kernel would not count it.
        held.append(b"\1" * max(0, int(due * 2**20) - sum(map(len, held))))
        time.sleep(1 / PIECES_PER_SECOND)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


if __name__ == "__main__":
    sys.exit(main())
