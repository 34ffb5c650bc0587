#!/usr/bin/env python3
"""Trains a small transformer by a synchronous group, undisturbed and with members killed and added, and compares the two runs. Called by
scripts/demo --group."""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import typing

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import group_runs  # noqa: E402
import loss_plot  # noqa: E402
import processes  # noqa: E402

MEMBERS = 3
# When a share of all steps has happened, this happens to the group.
DISTURBANCES = ((0.25, "kill"), (0.45, "kill"), (0.65, "join"))
NAMES = ("undisturbed", "disturbed")
PLOT = "loss.svg"
PROMPT = "A worker "
# Untrained weights have a loss of log2(96) = 6.6 bits; the frequencies of the characters alone lead to 4.8.
TEST_LOSS_MAX = 2.5


class Done(typing.NamedTuple):
    """A run that has succeeded."""
    folder: str
    summary: dict  # of the job
    losses: dict  # of each step; see group_runs.losses
    model: group_runs.Model
    reached: list  # [(seconds, step)]: when the script saw a step
    disturbed: list  # [(seconds, step, what happened, where to mark it)]


def disturb(kind, muster, run, folder):
    """What happened, in words and for a mark; None if it cannot be done now."""
    if kind == "join":
        asked = subprocess.run([muster, "scale", "job.yaml", "--workers", str(MEMBERS + 1)], cwd=folder, capture_output=True, check=False)
        return (f"member {MEMBERS + 1} joins", "joins") if asked.returncode == 0 else None
    pids = processes.nodes(run.pid, group_runs.TRAINER)["worker"]
    if len(pids) < MEMBERS:
        return None  # the last one that was killed is not back yet
    pid = random.choice(pids)
    return (f"SIGKILL to a member (process {pid})", "killed") if processes.send(pid, signal.SIGKILL) else None


def watch(run, folder, muster, todo, reached, disturbed):
    """Until the run ends: notes when steps happened, and disturbs it. `todo`: [(step, kind)]."""
    begin = time.monotonic()
    while run.poll() is None:
        step = group_runs.last_step(folder)
        seconds = time.monotonic() - begin
        if step > (reached[-1][1] if reached else 0):
            reached.append((seconds, step))
        if todo and step >= todo[0][0]:
            if (happened := disturb(todo[0][1], muster, run, folder)) is not None:
                disturbed.append((seconds, step, *happened))
                todo = todo[1:]
        time.sleep(0.1)


def run_job(muster, folder, todo):
    """The run in `folder`; None if it did not succeed."""
    reached, disturbed = [], []
    summary = group_runs.run(muster, folder, lambda run: watch(run, folder, muster, todo, reached, disturbed))
    if summary is None:
        return None
    return Done(folder, summary, group_runs.losses(folder), group_runs.model(folder), reached, disturbed)


def curves(runs):
    """The plot: the loss of each step, over steps and over seconds. One point for some steps, so that the curves can be seen."""
    def smooth(losses, step, wide=12):
        seen = [losses[s][1] for s in range(max(1, step - wide), step + 1)]
        return sum(seen) / len(seen)
    by_step = [[(step, smooth(run.losses, step)) for step in sorted(run.losses) if step % 6 == 0] for run in runs]
    by_time = [[(seconds, smooth(run.losses, step)) for seconds, step in run.reached] for run in runs]
    marks = runs[1].disturbed
    return loss_plot.svg([f"{name}, bits per character in training" for name in NAMES],
                         [("step", by_step, [(step, mark) for _, step, _, mark in marks]),
                          ("seconds", by_time, [(seconds, mark) for seconds, _, _, mark in marks])])


def table(runs):
    """Lines with the figures of both runs, side by side."""
    yield f"\n{'':42}{NAMES[0]:>16}{NAMES[1]:>16}"
    losses = [{(dataset["name"], epoch["epoch"]): epoch["metrics"]["loss"] for dataset in run.summary["datasets"]
               for epoch in dataset["epochs"]} for run in runs]
    for name, label in (("train", "training"), ("test", "test")):
        for key in sorted(key for key in losses[0] if key[0] == name):
            yield f"  {f'{label} loss, bits a character, epoch {key[1] + 1}':40}{losses[0][key]:16.4f}{losses[1].get(key, float('nan')):16.4f}"
    rows = (("steps", lambda run: f"{run.model.updates:,}"),
            ("every record committed exactly once", lambda run: "yes" if group_runs.exact(run.summary) else "NO"),
            ("members that were started again", lambda run: str(run.summary["restarts"]["worker"])),
            ("wall time, s", lambda run: f"{run.summary['seconds']:.1f}"))
    for label, value in rows:
        yield f"  {label:40}{value(runs[0]):>16}{value(runs[1]):>16}"


def report(runs, writer):
    """Prints the figures; returns whether they are what they should be."""
    print("\n".join(table(runs)))
    print("\nWhat happened to the disturbed run:")
    for seconds, step, what, _ in runs[1].disturbed:
        print(f"  {seconds:5.1f} s, after step {step:,}: {what}")
    path = group_runs.models(runs[1].folder)[-1][1]
    print("\nA text by the model of the disturbed run:")
    said = subprocess.run([writer, "--model", path, "--prompt", PROMPT, "--length", "300"], capture_output=True, text=True, check=True)
    print("\n".join("  " + line for line in said.stdout.splitlines()))
    print("\nSHA-256 of the model, all weights:")
    for name, run in zip(NAMES, runs):
        print(f"  {name:14}{run.model.digest}")
    equal = runs[0].model == runs[1].model and runs[0].losses == runs[1].losses
    print("The weights, and the losses of all steps, are equal bit for bit." if equal else "The two runs DIFFER.")
    learned = all(run.summary["metrics"]["test"]["loss"] <= TEST_LOSS_MAX for run in runs)
    good = equal and learned and all(group_runs.exact(run.summary) for run in runs) and len(runs[1].disturbed) == len(DISTURBANCES)
    print(f"\nThe target, equal bits, every record committed exactly once, test loss <= {TEST_LOSS_MAX}, and all of {len(DISTURBANCES)} "
          f"disturbances in time: " + ("reached." if good else "MISSED."))
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, epilog="Example: scripts/demo --group")
    parser.add_argument("--muster", required=True, type=os.path.abspath)
    parser.add_argument("--writer", required=True, type=os.path.abspath, help="the text_write executable")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    runs = []
    for name in NAMES:
        kills = sum(kind == "kill" for _, kind in DISTURBANCES)
        print(f"\n{MEMBERS} members, undisturbed ..." if not runs else
              f"\nThe same while {kills} members are killed and one joins ...", flush=True)
        group_runs.prepare(name)
        shutil.copy("job.yaml", name)
        todo = [(share * max(runs[0].losses), kind) for share, kind in DISTURBANCES] if runs else []
        run = run_job(options.muster, name, todo)
        if run is None:
            return 1
        runs.append(run)
    good = report(runs, options.writer)
    with open(PLOT + ".new", "w", encoding="utf-8") as file:
        file.write("\n".join(curves(runs)) + "\n")
    os.rename(PLOT + ".new", PLOT)
    print(f"\nThe curves are in {os.path.abspath(PLOT)}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
