#!/usr/bin/env python3
"""Measures the cost of a job's size: one axis after the other, with the defaults for everything else. Python's standard library only.

Most axes show the rate of pulls and pushes of all workers together, otherwise as in `speed.py pull`. `tensors` shows how often in a second
one worker pulls and pushes tensors of a million elements together. Each point is a real job of its
own, `muster run` with workers that link libmuster.so; its figures are medians over the rounds. More workers and servers than the
machine has cores show what it costs to share them.

`shards` shows the master's memory, and the time from SIGKILL until `muster status` is answered by the next master: of a real job whose
worker takes half of the shards, which are COMMITTED when the master is killed. Ten million take minutes. A master holds what is DONE
until a snapshot has it, here for 10 s, the default, so the memory of large jobs is that of the rate.

`epochs` shows the memory of every process of a real job after so many epochs, which are as short as epochs can be. A hundred thousand
take minutes. `files` shows how many records a second a worker reads, of which a number of files has equal parts. (What partitions of a
topic cost is measured by `topics.py partitions`.)

`members` shows the CPU time of the thread of the master that owns everything, which a real core, group commit and journal spend on
simulated workers and servers: `master_members_bench --help`.

Progress goes to stderr, figures to stdout. Exit codes: 0 measured, 2 bad arguments, 3 a measurement did not come to its end, 130
interrupted.

Axes:
"""

import json
import os
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "benchmarks"))
from growth import epochs, files, members, plot, rates, shards, tensors  # noqa: E402
from growth.axes import AXES  # noqa: E402
from scaling import job  # noqa: E402
from speed import command  # noqa: E402

MEASURED = {"rates": rates, "tensors": tensors, "shards": shards, "epochs": epochs, "files": files, "members": members}

EXAMPLES = """
examples:
  benchmarks/growth.py all --build build/release --plot docs/images/growth.svg
  benchmarks/growth.py keys dim --rounds 3 --output json
  benchmarks/growth.py shards members --rounds 1
"""


def parse():
    listed = {name: f"{axis.what}: {', '.join(format(value, ',') for value in axis.values)}" for name, axis in AXES.items()}
    parser = command.parser(__doc__, EXAMPLES, listed, "AXIS", rounds=3, smoke="one short round of two points, with few rows",
                            seconds=(1, "that each job is measured"))
    parser.add_argument("--plot", metavar="FILE", help="draws the figures to an SVG file")
    options = command.checked(parser)
    options.axes = list(AXES) if "all" in options.what else list(dict.fromkeys(options.what))
    for program in (program for name in options.axes for program in MEASURED[AXES[name].measured].PROGRAMS):
        if not os.access(os.path.join(options.build, program), os.X_OK):
            parser.error(f"--build {options.build}: no {program} there; build it first, or name another folder")
    options.tensor_bytes = tensors.BYTES
    return options


def measure(options, name, value, folder):
    """What the axis's module finds at one value."""
    measured = MEASURED[AXES[name].measured]
    point = measured.measure(options, name, value, os.path.join(folder, f"{name}-{value}"))
    job.say(f"{name} {value:,}: " + ", ".join(f"{line} {height:.3g}" for line, height in zip(measured.LINES, measured.heights(point))))
    return point


def text(name, points):
    yield f"{AXES[name].what}"
    for value, point in points.items():
        yield from (f"  {value:>11,} {line}" for line in MEASURED[AXES[name].measured].text(point))


def draw(path, results):
    """Axes of which the same is measured stand together."""
    groups = {}
    for name, points in results.items():
        measured = MEASURED[AXES[name].measured]
        heights = {value: measured.heights(point) for value, point in points.items()}
        lines = [[(value, ys[number]) for value, ys in heights.items()] for number in range(len(measured.LINES))]
        groups.setdefault(measured.LINES, []).append((AXES[name].what, lines))
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write("\n".join(plot.svg(list(groups.items()))) + "\n")
    os.rename(path + ".new", path)


def main():
    options = parse()

    def work(folder):
        results = {}
        for name in options.axes:
            values = AXES[name].values[:2] if options.smoke else AXES[name].values
            results[name] = {value: measure(options, name, value, folder) for value in values}
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
