"""Rates of pulls and pushes of all workers of a job together, and what CPU time a row takes."""

import os
import shutil

from growth.axes import row_of
from scaling import figures
from speed import command, ours

MODES = {"pull": "pull", "pull-push": "pull and push"}
FIGURES = ("rows_per_second", "server_cpu_ns", "worker_cpu_ns")
LINES = tuple(f"{words}, Mrows/s" for words in MODES.values())
PROGRAMS = ()  # command.checked looks for them


def measure(options, name, value, folder):
    """{mode: {figure: summary}}."""
    lines = os.path.join(os.path.dirname(folder), "lines")
    if not os.path.exists(lines):
        ours.write_lines(lines, 20_000 if options.smoke else 1_000_000, 8)
    found = {mode: [] for mode in MODES}
    for number in range(options.rounds):
        for mode in MODES:
            row = row_of(name, value, mode)
            row = command.small(row) if options.smoke else row
            run_folder = os.path.join(folder, f"{mode}-{number}")
            os.makedirs(run_folder)
            inputs = {"lines": lines, "keys": ours.write_keys(options, row, run_folder)}
            found[mode].append(ours.run(options, row, inputs, run_folder))
            if not options.keep:
                shutil.rmtree(run_folder)
    return {mode: {figure: figures.summary([one[figure] for one in rounds]) for figure in FIGURES} for mode, rounds in found.items()}


def heights(point):
    """Of LINES, where the plot has them."""
    return [point[mode]["rows_per_second"]["median"] / 1e6 for mode in MODES]


def text(point):
    for mode, words in MODES.items():
        rate = {key: one / 1e6 if key != "n" else one for key, one in point[mode]["rows_per_second"].items()}
        cpu = {role: point[mode][role + "_cpu_ns"]["median"] for role in ("server", "worker")}
        yield (f"{figures.line(f'{words:13}', rate, 'Mrows/s', 2)}; "
               f"CPU a row: servers {cpu['server']:.0f} ns, workers {cpu['worker']:.0f} ns")
