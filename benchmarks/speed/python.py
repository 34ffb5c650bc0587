"""What Python costs a trainer: jobs whose worker is Python beside the same jobs whose worker is C++, in turns, and beside torch RPC, which is
asked from Python, too."""

import dataclasses
import os

from scaling import figures
from speed import command, compare, ours, peers, turns
from speed.rows import FIGURES, ROWS

WHAT = "pulls, and pulls and pushes, of a worker in Python, in turns with one in C++ and with torch RPC"
PROGRAMS = ()  # beside those of all rows
CPP, PYTHON, TORCH = "C++", "Python", "torch RPC"
KINDS = ("pull", "pull-push")
NAMES = ("rows_per_second", "server_cpu_ns", "worker_cpu_ns")


def measure(options, folder):
    os.makedirs(folder)
    lines = os.path.join(folder, "lines")
    ours.write_lines(lines, 20_000 if options.smoke else 1_000_000, 8)
    rounds = {kind: of_kind(options, kind, lines, os.path.join(folder, kind)) for kind in KINDS}
    return {"row": "python", "what": WHAT, "rounds": rounds, "kinds": {kind: summaries(found) for kind, found in rounds.items()}}


def of_kind(options, kind, lines, folder):
    os.makedirs(folder)
    row = command.small(ROWS[kind]) if options.smoke else ROWS[kind]
    inputs = {"lines": lines, "keys": ours.write_keys(options, row, folder)}

    def run(way, run_folder):
        if way == TORCH:
            depths = peers.run(options, row, inputs)["depths"]
            return max(depths.values(), key=lambda found: found["rows_per_second"])
        python = os.path.abspath(options.python) if way == PYTHON else None
        return ours.run(options, dataclasses.replace(row, python=python), inputs, run_folder)
    ways = (PYTHON, CPP, TORCH) if peers.python(options, "torch") else (PYTHON, CPP)
    return turns.rounds(options, folder, f"python, {kind}", ways, run, lambda found: compare.shown(NAMES[0], found[NAMES[0]]))


def summaries(rounds):
    """{"ways": {way: {figure: summary}}, "ratios": {way: summary}}; a ratio above 1: Python is faster than the way."""
    ways = list(rounds[0])
    return {"ways": {way: {name: figures.summary([one[way][name] / FIGURES[name].scale for one in rounds]) for name in NAMES} for way in ways},
            "ratios": {way: compare.ratios(NAMES[0], [one[PYTHON] for one in rounds], [one[way] for one in rounds])
                       for way in ways if way != PYTHON}}


def text(found):
    yield f"python: {found['what']}"
    for kind, values in found["kinds"].items():
        yield f"  {kind}: {ROWS[kind].keys.text()} of {ROWS[kind].dim} float32"
        for way, of_way in values["ways"].items():
            for name, summary in of_way.items():
                yield f"    {way:10} {figures.line(FIGURES[name].label, summary, FIGURES[name].unit, FIGURES[name].digits)}"
        for way, ratio in values["ratios"].items():
            yield f"    {'ratio':10} {figures.line('rate', ratio, f'times that of {way}', 2)}"
