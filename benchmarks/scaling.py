#!/usr/bin/env python3
"""The figures of the scaler: how it handles memory, stragglers and its own death, and its cost. Python's standard library only.

Every subcommand runs real jobs on this machine, in a folder of its own that is removed (kept after a failure, or with --keep).
Progress goes to stderr, figures to stdout. Exit codes: 0 measured and as it must be, 1 measured and not, 2 bad arguments, 3 a
measurement did not come to its end, 130 interrupted.

Examples:
  benchmarks/scaling.py memory --build build/release
  benchmarks/scaling.py straggler --role worker --how group --seconds 240
  benchmarks/scaling.py kills --smoke --output json
"""

import argparse
import json
import os
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "benchmarks"))
from scaling import drain, job, kills, memory, overhead, straggler, undisturbed, warm  # noqa: E402

SUBCOMMANDS = {
    "memory": (memory, "limits that are too low: killed by the kernel and started bigger, or raised before it"),
    "straggler": (straggler, "a node throttled from outside: completion time with policies on and off"),
    "undisturbed": (undisturbed, "runs without disturbance: how often a policy intervened"),
    "overhead": (overhead, "training rate with the scaler at work against without"),
    "kills": (kills, "the scaler killed again and again: what was restarted, when REST answers again"),
    "drain": (drain, "from the order to drain a worker to its shards running elsewhere"),
    "warm": (warm, "a job that names no resources, run twice: what was learned, what the second began with"),
}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    subcommands = parser.add_subparsers(dest="what", required=True)
    for name, (module, what) in SUBCOMMANDS.items():
        one = subcommands.add_parser(name, help=what, description=f"{what}\n\n{module.__doc__}",
                                     epilog=f"Example: benchmarks/scaling.py {name} --build build/release",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
        one.add_argument("--build", default=os.path.join(ROOT, "build", "release"), help="build folder with the programs")
        one.add_argument("--output", choices=("text", "json"), default="text")
        one.add_argument("--keep", action="store_true", help="keep the folder")
        one.add_argument("--smoke", action="store_true",
                         help="the shortest runs that reach every step: shows in seconds that it works, its figures mean nothing")
        module.arguments(one)
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    if not os.access(os.path.join(options.build, "cli", "muster"), os.X_OK):
        parser.error(f"--build {options.build}: no cli/muster there; build it first, or name another folder")
    if options.smoke:
        SUBCOMMANDS[options.what][0].smoke(options)
    return options


def main():
    options = parse()
    module = SUBCOMMANDS[options.what][0]

    def work(folder):
        result = module.measure(options, folder)
        if options.output == "json":
            print(json.dumps(result))
        else:
            print("\n".join(module.text(result) + [f"not as it must be: {problem}" for problem in result["problems"]]))
        return 0 if result["ok"] else 1
    return job.in_folder(f"scaling.py {options.what}", options.what, options.keep, work)


if __name__ == "__main__":
    sys.exit(main())
