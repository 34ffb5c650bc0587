#!/usr/bin/env python3
"""What a synchronous group costs, and how long it is held up, through the front door: real jobs by `muster run`, whose trainer links
libmuster.so and logs its steps. Python's standard library only.

{figures}

Each figure is measured in rounds: in a round, what is compared runs one after the other, and a ratio is taken within a round, so what slows
a round slows both of its halves. Figures are medians over the rounds, with the smallest and the largest.

The peer torchft comes from `benchmarks/peers/install torchft`, or from any other virtual environment: --peers FOLDER, with Python at
FOLDER/torchft/bin/python. Without it, the peer is left out.

Progress goes to stderr, figures to stdout. Exit codes: 0 measured, 2 bad arguments, 3 a measurement did not come to its end, 130
interrupted.
"""

import argparse
import json
import os
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "benchmarks"))
from group_flights import added, buckets, checkpoint, cost, master_killed, member_killed, overhead, straggler  # noqa: E402
from scaling import job  # noqa: E402
from speed import peers  # noqa: E402

FIGURES = {"cost": cost, "buckets": buckets, "member-killed": member_killed, "master-killed": master_killed, "added": added, "checkpoint": checkpoint,
           "straggler": straggler, "overhead": overhead}
EXAMPLES = """
examples:
  benchmarks/group_flights.py
  benchmarks/group_flights.py --only cost --members 8 --rounds 9
  benchmarks/group_flights.py --smoke --output json
"""


def parse():
    listed = "\n".join(f"  {name:16} {module.WHAT}" for name, module in FIGURES.items())
    parser = argparse.ArgumentParser(description=__doc__.format(figures=listed), epilog=EXAMPLES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"), help="build folder with the programs (default: %(default)s)")
    parser.add_argument("--peers", default=peers.DEFAULT_FOLDER, help="where benchmarks/peers/install put torchft (default: %(default)s)")
    parser.add_argument("--only", action="append", choices=FIGURES, help="a figure; more than once for several (default: all)")
    parser.add_argument("--members", type=int, action="append", choices=cost.MEMBERS, help="of the figure cost (default: all)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=1, help="of each window in which steps are counted (default: %(default)s)")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    parser.add_argument("--keep", action="store_true", help="keep the folder of the jobs")
    parser.add_argument("--smoke", action="store_true", help="one short round with less data: shows in seconds that it works, its figures mean nothing")
    options = parser.parse_args()
    options.build, options.peers = os.path.abspath(options.build), os.path.abspath(os.path.expanduser(options.peers))
    options.only = list(dict.fromkeys(options.only or FIGURES))
    for program in ["cli/muster", *dict.fromkeys(program for name in options.only for program in FIGURES[name].PROGRAMS)]:
        if not os.access(os.path.join(options.build, program), os.X_OK):
            parser.error(f"--build {options.build}: no {program} there; build it first, or name another folder")
    if not 1 <= options.rounds <= 1000:
        parser.error("--rounds is from 1 to 1000")
    if not 0.1 <= options.seconds <= 600:
        parser.error("--seconds is from 0.1 to 600")
    if options.smoke:
        options.rounds, options.seconds = 1, 0.5
    return options


def main():
    options = parse()

    def work(folder):
        found = {}
        for name in options.only:
            found[name] = FIGURES[name].measure(options, os.path.join(folder, name))
            if options.output == "text":
                print("\n".join(FIGURES[name].text(found[name])), flush=True)
        if options.output == "json":
            print(json.dumps(found))
        return 0
    return job.in_folder("group_flights.py", "group-flights", options.keep, work)


if __name__ == "__main__":
    sys.exit(main())
