#!/usr/bin/env python3
"""Trains a small transformer with DiLoCo: several times undisturbed, each time with other seeds, and once more while members and the
master are killed and paused. Compares the losses, and checks that every record is committed once. Called by scripts/demo --diloco."""

import argparse
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import time
import typing

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import group_runs  # noqa: E402
import processes  # noqa: E402

JOB = "job-diloco.yaml"
MEMBERS = 3
# For a sixth run of the same kind, mean +- 3 standard deviations of five is the interval of 95 % (Student's t, 4 degrees of freedom).
SPREADS = 3
PAUSE_SECONDS = (0.3, 3)  # shorter and longer than the job's silenceLimit
BEFORE = 0.75  # of the steps, all disturbances are due: a pause can outlast several steps
LEARNED = 3.5  # bits a character; untrained weights have 6.6


class Done(typing.NamedTuple):
    """A run that has succeeded."""
    name: str
    summary: dict  # of the job
    model: group_runs.Model
    disturbed: list  # [(step, what happened)]


def seeded(text, seed):
    """A job file with another seed, of the data's order and of the initial weights."""
    text = re.sub(r"(?m)^  seed: \d+$", f"  seed: {seed}", text)
    return re.sub(r'--seed, "\d+"', f'--seed, "{seed}"', text)


def prepare(name, seed):
    """The folder of a run, and its job file."""
    group_runs.prepare(name)
    with open(JOB, encoding="utf-8") as file:
        text = file.read()
    with open(os.path.join(name, "job.yaml"), "w", encoding="utf-8") as file:
        file.write(seeded(text, seed))


def plan(count, rng):
    """`count` pairs (role, seconds of a pause; 0: SIGKILL), every fifth of them for the master."""
    roles = ["master" if i % 5 == 4 else "worker" for i in range(count)]
    return [(role, rng.uniform(*PAUSE_SECONDS) if rng.random() < 0.4 else 0) for role in roles]


def disturb(run, role, pause, rng):
    """What happened, in words; None if no such process is there now."""
    if not (pids := processes.nodes(run.pid, group_runs.TRAINER)[role]):
        return None
    pid = rng.choice(pids)
    if not processes.send(pid, signal.SIGSTOP if pause else signal.SIGKILL):
        return None
    if not pause:
        return f"SIGKILL to a {role}"
    time.sleep(pause)
    processes.send(pid, signal.SIGCONT)
    return f"a {role} was paused for {pause:.1f} s"


def watch(run, folder, todo, steps, rng, disturbed):
    """Until the run ends: disturbs it as `todo` says, evenly over most of its steps."""
    for number, (role, pause) in enumerate(todo):
        due = BEFORE * steps * number / len(todo)
        while run.poll() is None:
            step = group_runs.last_step(folder)
            if step >= due and (happened := disturb(run, role, pause, rng)) is not None:
                disturbed.append((step, happened))
                break
            time.sleep(0.05)


def run_job(muster, name, todo=(), steps=0):
    """The run in folder `name`; None if it did not succeed."""
    disturbed = []
    summary = group_runs.run(muster, name, lambda run: watch(run, name, todo, steps, random.Random(steps), disturbed), subprocess.DEVNULL)
    if summary is None:
        return None
    return Done(name, summary, group_runs.model(name), disturbed)


def losses(summary, dataset):
    """The loss of each epoch."""
    epochs = next(each["epochs"] for each in summary["datasets"] if each["name"] == dataset)
    return [epoch["metrics"]["loss"] for epoch in sorted(epochs, key=lambda epoch: epoch["epoch"])]


def spread(values):
    """The interval in which another value like these lies."""
    mean, deviation = statistics.mean(values), statistics.stdev(values)
    return mean - SPREADS * deviation, mean + SPREADS * deviation


def report(undisturbed, disturbed, planned):
    """Prints the figures; returns whether they are what they should be."""
    good = True
    curves = {dataset: [losses(run.summary, dataset) for run in (*undisturbed, disturbed)] for dataset in ("train", "test")}
    print(f"\n{'':32}" + "".join(f"{run.name:>14}" for run in (*undisturbed, disturbed)) + f"{'spread':>22}")
    for dataset, label in (("train", "training"), ("test", "test")):
        curve = curves[dataset]
        rows = [(f"epoch {epoch + 1}", [each[epoch] for each in curve]) for epoch in range(len(curve[0]))]
        rows.append(("mean of all epochs", [statistics.mean(each) for each in curve]))
        for row, values in rows:
            low, high = spread(values[:-1])
            place = "" if low <= values[-1] <= high else "  below" if values[-1] < low else "  ABOVE"
            good = good and (place != "  ABOVE" or row not in (rows[-1][0], rows[-2][0]))
            print(f"  {f'{label} loss, {row}':30}" + "".join(f"{value:14.4f}" for value in values)
                  + f"{low:12.4f} .. {high:.4f}{place}")
    print("\nWhile a member is away, the others train on more minibatches each, one after the other. That learns more from a record than many "
          "members at once do, so a disturbed run may lie below the spread.")
    kills = sum("SIGKILL" in what for _, what in disturbed.disturbed)
    print(f"\n{len(disturbed.disturbed)} disturbances of {planned}: {kills} kills and {len(disturbed.disturbed) - kills} pauses, "
          f"{sum('master' in what for _, what in disturbed.disturbed)} of them of the master; "
          f"{disturbed.summary['restarts']['worker']} members were started again.")
    exact = all(group_runs.exact(run.summary) for run in (*undisturbed, disturbed))
    print(f"Every record of every epoch is committed exactly once, in all runs: {'yes' if exact else 'NO'}")
    print(f"Steps of the group: {[run.model.updates for run in (*undisturbed, disturbed)]}; the members of a run have equal weights.")
    learned = curves["test"][-1][-1] <= LEARNED
    good = good and exact and learned and len(disturbed.disturbed) == planned
    print(f"\nThe target, the losses of the last epoch and of the mean of all epochs within the spread or below, every record committed exactly once, "
          f"test loss <= {LEARNED}, and all disturbances in time: " + ("reached." if good else "MISSED."))
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, epilog="Example: scripts/demo --diloco")
    parser.add_argument("--muster", required=True, type=os.path.abspath)
    parser.add_argument("--runs", type=int, default=5, help="undisturbed ones, 2 or more (default: %(default)s)")
    parser.add_argument("--disturbances", type=int, default=50, help="kills and pauses (default: %(default)s)")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    runs = []
    for seed in range(1, max(2, options.runs) + 2):
        last = seed > max(2, options.runs)
        name = "disturbed" if last else f"run-{seed}"
        todo = plan(options.disturbances, random.Random(seed)) if last else []
        print(f"{name}: {MEMBERS} members" + (f", {len(todo)} kills and pauses of members and master" if last else ""), flush=True)
        prepare(name, seed)
        run = run_job(options.muster, name, todo, runs[0].model.updates if last else 0)
        if run is None:
            return 1
        runs.append(run)
    return 0 if report(runs[:-1], runs[-1], options.disturbances) else 1


if __name__ == "__main__":
    sys.exit(main())
