"""What exactly-once costs a push: parts applied by the partition engine as a server does, and the same parts without floor and window, in turns
on the same rows, one thread, CPU time (push_tax). Nothing else of a push is in it, no frame and no socket; of a whole push it is a smaller
share."""

import dataclasses
import json
import os
import statistics
import subprocess

from scaling import figures
from scaling import job as jobs
from speed import command, ours
from speed.rows import Keys, Row, sparse

WHAT = "what exactly-once costs a push: the partition engine with its windows and without, one thread, in turns"
PROGRAMS = ("benchmarks/push_tax",)
WINDOW = 4  # times --seconds: a window fills and is forgotten meanwhile


@dataclasses.dataclass(frozen=True)
class Load:
    row: Row
    minibatches: int  # in the window after a snapshot: about those of 10 s, at the rate that a job reaches


LOADS = {"large": Load(sparse("large calls"), 6_000), "small": Load(sparse("small calls", keys=Keys(100, calls=8192)), 50_000)}
SMOKE_MINIBATCHES = 64
# figure: (label, unit, digits)
FIGURES = {"with_ns": ("with windows, a row", "ns", 2), "without_ns": ("without, a row", "ns", 2), "forgetting_ns": ("forgetting, a row", "ns", 3),
           "tax": ("exactly-once costs, forgetting included", "%", 2), "part_ns": ("the same, a part", "ns", 1)}


def of_pairs(said):
    """The figures of one run of push_tax: what comes on top is the median over its pairs."""
    more = statistics.median(a - b for a, b in zip(said["with_ns"], said["without_ns"]))
    share = statistics.median(a / b - 1 for a, b in zip(said["with_ns"], said["without_ns"]))
    without, forgetting = statistics.median(said["without_ns"]), statistics.median(said["forgetting_ns"])
    return {"with_ns": statistics.median(said["with_ns"]), "without_ns": without, "forgetting_ns": forgetting,
            "tax": 100 * (share + forgetting / without), "part_ns": (more + forgetting) * said["rows_a_part"], "rows_a_part": said["rows_a_part"]}


def run(options, row, keys, minibatches):
    arguments = [ours.program(options, "push_tax"), keys, row.dim, row.partitions, minibatches, WINDOW * options.seconds]
    done = subprocess.run(list(map(str, arguments)), stdout=subprocess.PIPE, text=True, timeout=3600, check=False)
    if done.returncode != 0:
        raise jobs.Failed(f"push_tax ended with code {done.returncode}")
    return of_pairs(json.loads(done.stdout))


def measure(options, folder):
    rounds = [{} for _ in range(options.rounds)]
    of_loads = {}
    for name, load in LOADS.items():
        row = command.small(load.row) if options.smoke else load.row
        of_load = os.path.join(folder, name)
        os.makedirs(of_load)
        keys = ours.write_keys(options, row, of_load)
        for number, found in enumerate(rounds):
            found[name] = run(options, row, keys, SMOKE_MINIBATCHES if options.smoke else load.minibatches)
            jobs.say(f"{number + 1}/{options.rounds} tax, {row.what}: {found[name]['tax']:.2f} %")
        of_loads[name] = {"what": f"{row.keys.text()} of {row.dim} float32, {rounds[0][name]['rows_a_part']:.1f} of them a part",
                          "figures": {figure: figures.summary([one[name][figure] for one in rounds]) for figure in FIGURES}}
    return {"row": "tax", "what": WHAT, "rounds": rounds, "loads": of_loads}


def text(found):
    yield f"tax: {found['what']}"
    for of_load in found["loads"].values():
        yield f"  {of_load['what']}"
        for name, (label, unit, digits) in FIGURES.items():
            yield "    " + figures.line(label, of_load["figures"][name], unit, digits)
