"""How fast one worker reads records, nothing done with them, against the number of files that share the records."""

import os
import shutil

from scaling import figures
from speed import ours
from speed.rows import Row

FIGURES = ("records_per_second", "worker_cpu_share")
LINES = ("M records/s",)
PROGRAMS = ()  # command.checked looks for them
LENGTH = 64  # of a record, bytes


def row_of():
    return Row("records of files, default shard sizes", "read", FIGURES)


def measure(options, _, value, folder):
    """{figure: summary}."""
    lines = os.path.join(folder, "lines")
    ours.write_files(lines, 100_000 if options.smoke else 4_000_000, value, LENGTH)
    inputs = {"lines": os.path.join(lines, "*")}
    found = []
    for number in range(options.rounds):
        run_folder = os.path.join(folder, str(number))
        os.makedirs(run_folder)
        found.append(ours.run(options, row_of(), inputs, run_folder))
        if not options.keep:
            shutil.rmtree(run_folder)
    shutil.rmtree(lines)
    return {figure: figures.summary([one[figure] for one in found]) for figure in FIGURES}


def heights(point):
    """Of LINES, where the plot has them."""
    return [point["records_per_second"]["median"] / 1e6]


def text(point):
    rate = {key: number / 1e6 if key != "n" else number for key, number in point["records_per_second"].items()}
    yield f"{figures.line('rate', rate, 'M records/s', 2)}; CPU of the worker: {point['worker_cpu_share']['median']:.2f} cores"
