#!/usr/bin/env python3
"""How the rate of pulls and pushes changes with the size of a job: one axis after the other, everything else as in `speed.py pull`.
Python's standard library only.

Each point is a real job of its own, `muster run` with workers that link libmuster.so; its figures are medians over the rounds, rates
of all workers together. More workers and servers than the machine has cores show what it costs to share them.

Progress goes to stderr, figures to stdout. Exit codes: 0 measured, 2 bad arguments, 3 a measurement did not come to its end, 130
interrupted.

Axes:
"""

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
from speed import command, ours  # noqa: E402

EXAMPLES = """
examples:
  benchmarks/growth.py all --build build/release --plot docs/images/growth.svg
  benchmarks/growth.py keys dim --rounds 3 --output json
"""


def parse():
    listed = {name: f"{axis.what}: {', '.join(format(value, ',') for value in axis.values)}" for name, axis in AXES.items()}
    parser = command.parser(__doc__, EXAMPLES, listed, "AXIS", rounds=3, smoke="one short round of two points with few rows",
                            seconds=(1, "that each job is measured"))
    parser.add_argument("--plot", metavar="FILE", help="draws the rates to an SVG file")
    options = command.checked(parser)
    options.tensor_bytes = 1  # nothing is measured in tensors
    return options


def measure(options, name, value, lines, folder):
    """{mode: {"rows_per_second", "server_cpu_ns", "worker_cpu_ns": summary}}."""
    found = {mode: [] for mode in MODES}
    for number in range(options.rounds):
        for mode in MODES:
            row = row_of(name, value, mode)
            row = command.small(row) if options.smoke else row
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
        for name in AXES if "all" in options.what else dict.fromkeys(options.what):
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
