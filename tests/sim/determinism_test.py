#!/usr/bin/env python3
"""One seed is one trace: two processes (with other addresses, and other orders of hash maps), or two builds (other
compilers, optimised otherwise), tell the same stories."""

import argparse
import subprocess
import sys


def hashes(program, seeds, jobs):
    command = [program, "--seeds", str(seeds), "--jobs", str(jobs)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [line for line in output.splitlines() if line.startswith("hash over all traces")]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="+", help="simulations; each is run, a single one twice")
    parser.add_argument("--seeds", type=int, default=60)
    options = parser.parse_args()
    programs = options.programs if len(options.programs) > 1 else options.programs * 2
    found = [hashes(program, options.seeds, 1 + i) for i, program in enumerate(programs)]
    if not found[0] or any(one != found[0] for one in found):
        print(f"the same seeds told different stories: {found}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
