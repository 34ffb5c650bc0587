"""What TLS costs a trainer whose servers are on other machines: the same jobs over TCP in turns, in plain text and encrypted."""

import dataclasses
import os

from scaling import figures
from speed import command, compare, ours, turns
from speed.rows import FIGURES, ROWS

PLAIN, TLS = "plain text", "TLS"
JOBS = {"pull": ROWS["pull-tcp"], "pull-push": ROWS["pull-push-tcp"],
        "small": dataclasses.replace(ROWS["small"], what="one small pull at a time over TCP, nothing ahead", tcp=True)}
WHAT = "what TLS costs: pulls, pulls and pushes, and small pulls over TCP, in turns with the same jobs in plain text"
PROGRAMS = ()  # beside those of all rows


def job_of(options, kind, how):
    row = command.small(JOBS[kind]) if options.smoke else JOBS[kind]
    return dataclasses.replace(row, tls=how == TLS)


def summaries(kind, rounds):
    """{figure: {PLAIN: summary, TLS: summary, "ratio": summary}} of [{how: figures}], as they are shown; a ratio above 1: TLS is better."""
    return {name: {how: figures.summary([one[how][name] / FIGURES[name].scale for one in rounds]) for how in (PLAIN, TLS)}
            | {"ratio": compare.ratios(name, [one[TLS] for one in rounds], [one[PLAIN] for one in rounds])}
            for name in JOBS[kind].figures}


def measure(options, folder):
    os.makedirs(folder)
    lines = os.path.join(folder, "lines")
    ours.write_lines(lines, 20_000 if options.smoke else 1_000_000, 8)
    rounds = {}
    for kind in JOBS:
        of_kind = os.path.join(folder, kind)
        os.makedirs(of_kind)
        inputs = {"lines": lines, "keys": ours.write_keys(options, job_of(options, kind, PLAIN), of_kind)}
        first = JOBS[kind].figures[0]

        def run(how, run_folder, kind=kind, inputs=inputs):
            return ours.run(options, job_of(options, kind, how), inputs, run_folder)
        rounds[kind] = turns.rounds(options, of_kind, f"tls, {kind}", (PLAIN, TLS), run,
                                    lambda found, first=first: compare.shown(first, found[first]))
    return {"row": "tls", "what": WHAT, "keys": {kind: job_of(options, kind, PLAIN).keys.text() for kind in JOBS}, "rounds": rounds,
            "kinds": {kind: summaries(kind, rounds[kind]) for kind in JOBS}}


def text(found):
    yield f"tls: {found['what']}"
    for kind, named in found["kinds"].items():
        yield f"  {kind}: {JOBS[kind].what}; {found['keys'][kind]}"
        for name, values in named.items():
            figure = FIGURES[name]
            for how in (PLAIN, TLS):
                yield f"    {how:10} {figures.line(figure.label, values[how], figure.unit, figure.digits)}"
            yield f"    {'ratio':10} {figures.line(figure.label, values['ratio'], 'times as good with TLS', 2)}"
