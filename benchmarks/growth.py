#!/usr/bin/env python3
"""How the rate of pulls and pushes changes with the size of a job: one axis after the other, everything else as in `speed.py pull`.
Python's standard library only.

Each point is a real job of its own, `muster run` with workers that link libmuster.so; its figures are medians over the rounds, rates
of all workers together. More workers and servers than the machine has cores show what it costs to share them.

Progress goes to stderr, figures to stdout. Exit codes: 0 measured, 2 bad arguments, 3 a measurement did not come to its end, 130
interrupted.

Axes:
"""

import argparse
import dataclasses
import json
import os
import shutil
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "benchmarks"))
from growth import plot  # noqa: E402
from growth.axes import AXES, MODES, row_of  # noqa: E402
from scaling import figures, job  # noqa: E402
from speed import ours  # noqa: E402

EXAMPLES = """
examples:
  benchmarks/growth.py all --build build/release --plot docs/images/growth.svg
  benchmarks/growth.py keys dim --rounds 3 --output json
"""


def parse():
    listed = "\n".join(f"  {name:11} {axis.what}: {', '.join(format(value, ',') for value in axis.values)}" for name, axis in AXES.items())
    parser = argparse.ArgumentParser(description=__doc__ + listed + "\n  all         all of them", epilog=EXAMPLES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("axes", nargs="+", choices=[*AXES, "all"], metavar="AXIS", help="as above")
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"), help="build folder with the programs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1, help="that each job is measured (default: %(default)s)")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    parser.add_argument("--plot", metavar="FILE", help="draws the rates to an SVG file")
    parser.add_argument("--keep", action="store_true", help="keep the folder")
    parser.add_argument("--smoke", action="store_true",
                        help="one short round of two points with few rows: shows in seconds that it works, its figures mean nothing")
    options = parser.parse_args()
    options.build, options.tensor_bytes = os.path.abspath(options.build), 1
    for program in ("cli/muster", "benchmarks/speed_trainer", "benchmarks/speed_limits"):
        if not os.access(os.path.join(options.build, program), os.X_OK):
            parser.error(f"--build {options.build}: no {program} there; build it first, or name another folder")
    if options.rounds < 1 or not 0.05 <= options.seconds <= 600:
        parser.error("--rounds is at least 1, --seconds from 0.05 to 600")
    if options.smoke:
        options.rounds, options.seconds = 1, 0.3
    return options


def small(row):
    """The row with --smoke."""
    return dataclasses.replace(row, keys=dataclasses.replace(row.keys, a_call=min(row.keys.a_call, 2000), rows=20_000, calls=4))


def measure(options, name, value, lines, folder):
    """{mode: {"rows_per_second", "server_cpu_ns", "worker_cpu_ns": summary}}."""
    found = {mode: [] for mode in MODES}
    for number in range(options.rounds):
        for mode in MODES:
            row = row_of(name, value, mode)
            row = small(row) if options.smoke else row
            run_folder = os.path.join(folder, f"{name}-{value}-{mode}-{number}")
            os.makedirs(run_folder)
            inputs = {"lines": lines, "keys": ours.write_keys(options, row, run_folder)}
            found[mode].append(ours.run(options, row, inputs, run_folder))
            if not options.keep:
                shutil.rmtree(run_folder)
    summaries = {mode: {figure: figures.summary([one[figure] for one in rounds]) for figure in ("rows_per_second", "server_cpu_ns", "worker_cpu_ns")}
                 for mode, rounds in found.items()}
    job.say(f"{name} {value:,}: " + ", ".join(f"{words} {summaries[mode]['rows_per_second']['median'] / 1e6:.3g} Mrows/s" for mode, words in MODES.items()))
    return summaries


def text(name, points):
    yield f"{AXES[name].what}"
    for value, modes in points.items():
        for mode, words in MODES.items():
            rate = {key: one / 1e6 if key != "n" else one for key, one in modes[mode]["rows_per_second"].items()}
            cpu = {role: modes[mode][role + "_cpu_ns"]["median"] for role in ("server", "worker")}
            yield (f"  {value:>11,} {figures.line(f'{words:13}', rate, 'Mrows/s', 2)}; "
                   f"CPU a row: servers {cpu['server']:.0f} ns, workers {cpu['worker']:.0f} ns")


def draw(path, results):
    panels = [(AXES[name].what, [[(value, modes[mode]["rows_per_second"]["median"] / 1e6) for value, modes in points.items()] for mode in MODES])
              for name, points in results.items()]
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write("\n".join(plot.svg("Mrows/s", MODES.values(), panels)) + "\n")
    os.rename(path + ".new", path)


def main():
    options = parse()

    def work(folder):
        lines = os.path.join(folder, "lines")
        ours.write_lines(lines, 20_000 if options.smoke else 1_000_000, 8)
        results = {}
        for name in AXES if "all" in options.axes else dict.fromkeys(options.axes):
            values = AXES[name].values[:2] if options.smoke else AXES[name].values
            results[name] = {value: measure(options, name, value, lines, folder) for value in values}
            if options.output == "text":
                print("\n".join(text(name, results[name])), flush=True)
        if options.output == "json":
            print(json.dumps(results))
        if options.plot:
            draw(options.plot, results)
        return 0
    return job.in_folder("growth.py", "growth", options.keep, work)


if __name__ == "__main__":
    sys.exit(main())
