"""What it costs that an epoch waits for the evaluation of the one before: jobs of examples/flights with its test set, with such waits and with
`training.evaluation: overlap`, in turns. The time is that of the whole run."""

import os

from scaling import figures
from scaling import job as jobs
from speed import turns

WHAT = "an evaluation that sees its epoch and no more, in turns with evaluations that overlap with the next epoch: time of whole runs"
PROGRAMS = (f"examples/flights/{jobs.FLIGHTS_TRAINER}",)
HONEST, OVERLAP = "atEpochEnd", "overlap"  # values of training.evaluation
# kind: (in words, epochs, how many copies of the training records an epoch has)
KINDS = {"short": ("three epochs of the example's records", 3, 1), "long": ("two epochs of ten times as many", 2, 10)}
SMOKE_RECORDS = 20_000


def spec(data, kind, how):
    _, epochs, copies = KINDS[kind]
    made = data.spec(epochs=epochs, per_shard=16)
    train = made["datasets"][0]
    train["files"] = [os.path.join(os.path.dirname(data.path), f"copy-{number}.csv") for number in range(copies)]
    test = {"name": "test", "mode": "evaluate", "files": [os.path.join(os.path.dirname(data.path), "test.csv")], "header": True,
            "minibatchSize": 1024}
    return made | {"datasets": [train, test], "training": made["training"] | {"evaluation": how}}


def run(options, data, kind, how, folder):
    """Seconds of the run."""
    with jobs.Job(options, folder, spec(data, kind, how), data.trainer) as job:
        summary = job.finish(900)
        jobs.require_exact(summary)
        return summary["wall_seconds"]


def measure(options, folder):
    data = jobs.Flights(options, os.path.join(folder, "data"), SMOKE_RECORDS if options.smoke else 0)
    for number in range(max(copies for _, _, copies in KINDS.values())):
        os.link(data.path, os.path.join(os.path.dirname(data.path), f"copy-{number}.csv"))
    rounds = {kind: turns.rounds(options, os.path.join(folder, kind), f"evaluation, {kind}", (HONEST, OVERLAP),
                                 lambda how, run_folder, kind=kind: run(options, data, kind, how, run_folder), "{:.2f} s".format)
              for kind in KINDS}
    return {"row": "evaluation", "what": WHAT, "rounds": rounds,
            "kinds": {kind: {how: figures.summary([one[how] for one in of_kind]) for how in (HONEST, OVERLAP)}
                      | {"ratio": figures.summary([one[HONEST] / one[OVERLAP] for one in of_kind])} for kind, of_kind in rounds.items()}}


def text(found):
    yield f"evaluation: {found['what']}"
    for kind, values in found["kinds"].items():
        yield f"  {kind}: {KINDS[kind][0]}"
        for how in (HONEST, OVERLAP):
            yield f"    {how:10} {figures.line('run', values[how], 's', 2)}"
        yield f"    {'ratio':10} {figures.line('run', values['ratio'], 'times as long with waits', 3)}"
