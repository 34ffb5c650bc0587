"""How often one worker pulls and pushes dense tensors that have a million elements together, against their number."""

import os
import shutil

from scaling import figures
from speed import ours
from speed.rows import Row

BYTES = 4_000_000  # of all tensors
FIGURES = ("step_ms", "server_cpu_ms", "worker_cpu_ms")
LINES = ("steps/s",)
PROGRAMS = ()  # command.checked looks for them


def row_of(value):
    return Row("dense tensors pulled and pushed in each step", "dense", FIGURES, tables=value, prefetch=2)


def measure(options, _, value, folder):
    """{figure: summary}."""
    os.makedirs(folder)
    inputs = {"lines": os.path.join(folder, "lines")}
    ours.write_lines(inputs["lines"], 20_000 if options.smoke else 1_000_000, 8)
    found = []
    for number in range(options.rounds):
        run_folder = os.path.join(folder, str(number))
        os.makedirs(run_folder)
        found.append(ours.run(options, row_of(value), inputs, run_folder))
        if not options.keep:
            shutil.rmtree(run_folder)
    return {figure: figures.summary([one[figure] for one in found]) for figure in FIGURES}


def heights(point):
    """Of LINES, where the plot has them."""
    return [1e3 / point["step_ms"]["median"]]


def text(point):
    cpu = {role: point[role + "_cpu_ms"]["median"] for role in ("server", "worker")}
    yield f"{figures.line('step', point['step_ms'], 'ms', 2)}; CPU a step: server {cpu['server']:.2f} ms, worker {cpu['worker']:.2f} ms"
