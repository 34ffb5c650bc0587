"""What the commands that measure real jobs of speed_trainer have in common on their command line."""

import argparse
import dataclasses
import itertools
import os

from speed import ours

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAMS = ("cli/muster", f"benchmarks/{ours.TRAINER}", "benchmarks/speed_limits")


def parser(description, epilog, things, metavar, *, rounds, seconds, smoke):
    """A parser for some of `things`, {name: in words}, with the options of all; `smoke` and `seconds` as (default, help)."""
    width = max(map(len, things)) + 1
    listed = "\n".join(f"  {name:{width}} {words}" for name, words in (things | {"all": "all of them"}).items())
    made = argparse.ArgumentParser(description=description + listed, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("what", nargs="+", choices=[*things, "all"], metavar=metavar, help="as above")
    made.add_argument("--build", default=os.path.join(ROOT, "build", "release"), help="build folder with the programs")
    made.add_argument("--rounds", type=int, default=rounds)
    made.add_argument("--seconds", type=float, default=seconds[0], help=f"{seconds[1]} (default: %(default)s)")
    made.add_argument("--output", choices=("text", "json"), default="text")
    made.add_argument("--keep", action="store_true", help="keep the folder")
    made.add_argument("--smoke", action="store_true", help=f"{smoke}: shows in seconds that it works, its figures mean nothing")
    return made


def checked(made, more=None):
    """The options, or the end of the process with what is wrong with them. `more`: {thing: programs that it alone needs}."""
    options = made.parse_args()
    options.build = os.path.abspath(options.build)
    asked = [programs for name, programs in (more or {}).items() if name in options.what or "all" in options.what]
    for program in itertools.chain(PROGRAMS, *asked):
        if not os.access(os.path.join(options.build, program), os.X_OK):
            made.error(f"--build {options.build}: no {program} there; build it first, or name another folder")
    if options.rounds < 1 or not 0.05 <= options.seconds <= 600:
        made.error("--rounds is at least 1, --seconds from 0.05 to 600")
    if options.smoke:
        options.rounds, options.seconds = 1, 0.3
    return options


def small(row):
    """The row with --smoke."""
    keys = row.keys and dataclasses.replace(row.keys, a_call=min(row.keys.a_call, 2000), rows=20_000, calls=4)
    return dataclasses.replace(row, keys=keys, workers=min(row.workers, 3))
