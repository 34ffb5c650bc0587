#!/usr/bin/env python3
"""The weights of the best epoch, and the early stop, under kills: both must be what they are without any. Python's standard library only.

The loss of an evaluation is how far the records in the weights are from those of BEST epochs: it is exact, and any push of
another epoch in the weights that are judged changes it. So the job must stop PATIENCE epochs later, and the weights that are
kept must equal the closed form of their epoch, row for row.
"""

import argparse
import os
import random
import signal
import sys
import time

import counter_job
from closed_form_test import strike

RECORDS, EPOCHS, BEST, PATIENCE = 3000, 9, 3, 2
LAST = BEST + PATIENCE


def require(seen, expected, what):
    if seen != expected:
        raise AssertionError(f"{what}: {seen}, but should be {expected}")


def kill_until_the_end(job, run, kills, rng):
    """SIGKILL to processes of all roles in turn, until there were enough; then the job runs at full speed. Until then it is so
    slow that it outlives the kills."""
    roles = ["ps", "worker", "master", "scaler"]
    for i in range(kills):
        time.sleep(rng.uniform(0.3, 1.0))
        pid = strike(run, roles[i % len(roles)], signal.SIGKILL, os.path.basename(job.trainer), rng)
        print(f"SIGKILL {roles[i % len(roles)]} {pid}", flush=True)
    job.hurry()


def require_kept(job, epoch, name):
    """The export of the kept weights is the closed form of so many epochs."""
    folder = f"export-{name}"
    job.ask("export", "job.yaml", "--epoch", name, "--output-dir", folder)
    epochs, job.epochs = job.epochs, epoch
    differences = job.compare(folder)
    job.epochs = epochs
    require(len(differences), 0, f"rows of --epoch {name} that differ")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0],
                                     epilog="Example: best_epoch_test.py --muster build/dev/cli/muster --trainer build/dev/cli/verify_worker")
    counter_job.add_arguments(parser)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=4)
    return parser.parse_args()


def main():
    options = parse_options()
    rng = random.Random(options.seed)
    with counter_job.CounterJob(options, seed=options.seed, records=RECORDS, epochs=EPOCHS, evaluate_records=200,
                                slow_us=10_000 + 2_500 * options.kills if options.kills else 0) as job:
        job.command += ["--best-after", str(BEST * RECORDS)]
        job.training = {"keep": {"best": "loss", "every": 2, "last": 1}, "stopEarly": {"metric": "loss", "patience": PATIENCE}}
        job.write_data(rng)
        job.write_job()
        run = job.start()
        kill_until_the_end(job, run, options.kills, rng)
        job.wait(run, 0)
        summary = job.summary()
        require(summary["state"], "succeeded", "the end")
        require(summary["reason"].split(":")[0], f"stopped early after epoch {LAST} of {EPOCHS}", "the reason")
        unseen = next(dataset for dataset in summary["datasets"] if dataset["name"] == "unseen")
        require([epoch["metrics"]["loss"] for epoch in unseen["epochs"]],
                [abs(epoch - BEST) * RECORDS for epoch in range(1, LAST + 1)], "the loss by epoch")
        require(summary["kept_epochs"], [{"epoch": BEST - 1, "best": True, "value": 0},
                                         {"epoch": BEST, "best": False, "value": RECORDS}], "the kept epochs")
        require_kept(job, BEST, "best")
        require_kept(job, BEST + 1, str(BEST + 1))
        job.epochs = LAST
        job.require_closed_form()


if __name__ == "__main__":
    sys.exit(main())
