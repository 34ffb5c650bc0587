"""What a job's epochs cost its processes: the memory of each, with epochs of one minibatch.

A real job of one record, which one worker trains again and again as fast as it can, each time with a row that it pushes and a metric. When
the given number of epochs is COMMITTED, it stands still, and the resident memory of every process is read."""

import json
import os
import shutil
import subprocess
import time

from scaling import figures
from scaling import job as jobs
from scaling.job import processes
from speed import ours

PROBE = "recovery_probe"
PROGRAMS = (f"benchmarks/{PROBE}",)
ROLES = ("master", "ps", "worker", "scaler", "run")
NAMES = {"ps": "the server", "run": "`muster run`"}
LINES = tuple(f"memory of {NAMES.get(role, 'the ' + role)}, MB" for role in ROLES)
WAIT_SECONDS = 3600


def spec(options, epochs, lines):
    dataset = {"name": "lines", "files": [lines], "epochs": 10 * epochs, "minibatchSize": 1, "minibatchesPerShard": 1}
    command = [os.path.join(options.build, "benchmarks", PROBE), "--hold-after", str(epochs), "--push"]
    return jobs.spec_of([dataset], command, workers=1, servers=1, snapshots="1s", partitions=1,
                        training={"shardsAhead": max(1, min(100, epochs // 4))})


def committed_in(job):
    """The epochs that are COMMITTED; None while no master answers."""
    asked = subprocess.run([job.muster, "status", "job.yaml", "--output", "json"], cwd=job.folder, capture_output=True, text=True,
                           timeout=60, check=False)
    return json.loads(asked.stdout)["commit_seq"] if asked.returncode == 0 else None


def one(options, epochs, lines, folder):
    """{figure: number}."""
    with jobs.Job(options, folder, spec(options, epochs, lines), PROBE) as job:
        job.wait("the first epoch", lambda: committed_in(job), 120, 0.2)
        began = time.monotonic()
        job.wait(f"{epochs:,} committed epochs", lambda: committed_in(job) == epochs, WAIT_SECONDS, 0.5)
        rate = epochs / (time.monotonic() - began)
        pids = processes.nodes(job.run.pid, PROBE) | {"run": [job.run.pid]}
        return {role: processes.memory(pids[role][0])[0] for role in ROLES} | {"epochs_per_second": rate}


def measure(options, _, value, folder):
    """{figure: summary}."""
    os.makedirs(folder)
    lines = os.path.join(folder, "lines")
    ours.write_lines(lines, 1, 9)
    found = []
    for number in range(options.rounds):
        run_folder = os.path.join(folder, str(number))
        found.append(one(options, value, lines, run_folder))
        if not options.keep:
            shutil.rmtree(run_folder)
    return {figure: figures.summary([round_[figure] for round_ in found]) for figure in (*ROLES, "epochs_per_second")}


def megabytes(summary):
    return {key: number / 1e6 if key != "n" else number for key, number in summary.items()}


def heights(point):
    """Of LINES, where the plot has them."""
    return [point[role]["median"] / 1e6 for role in ROLES]


def text(point):
    for role, line in zip(ROLES, LINES):
        yield figures.line(line.partition(",")[0], megabytes(point[role]), "MB", 1)
    yield figures.line("rate, with the start", point["epochs_per_second"], "epochs/s", 0)
