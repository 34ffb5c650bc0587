"""What a job's shards cost its master: memory, and the time from SIGKILL until the next one serves.

A real job of shards of one record. One worker takes half of them as fast as it can, and stands still in the next. When all that is done
is COMMITTED, the master is killed."""

import json
import os
import shutil
import signal
import subprocess
import time

from scaling import figures
from scaling import job as jobs
from scaling.job import processes
from speed import ours

PROBE = "recovery_probe"
PROGRAMS = (f"benchmarks/{PROBE}",)
LINES = ("memory of the master, MB", "its peak, MB", "from SIGKILL until it serves, ms")
FIGURES = ("memory_bytes", "memory_max_bytes", "serving_ms")
WAIT_SECONDS = 1800  # ten million shards at a few thousand a second


def spec(options, shards, lines):
    dataset = {"name": "lines", "files": [lines], "epochs": 1, "minibatchSize": 1, "minibatchesPerShard": 1}
    command = [os.path.join(options.build, "benchmarks", PROBE), "--hold-after", str(shards // 2)]
    return jobs.spec_of([dataset], command, workers=1, servers=1, snapshots="1s" if options.smoke else "10s", partitions=256,
                        training={"shardsAhead": max(1, min(1000, shards // 4))},
                        restarts={"crashLoopExits": 1000, "backoffInitial": "0s", "backoffMax": "0s"})


def status_of(job):
    """The output of `muster status`; None while no master answers."""
    asked = subprocess.run([job.muster, "status", "job.yaml", "--output", "json"], cwd=job.folder, capture_output=True, text=True,
                           timeout=60, check=False)
    return json.loads(asked.stdout) if asked.returncode == 0 else None


def one(options, shards, lines, folder):
    """{figure: number}."""
    with jobs.Job(options, folder, spec(options, shards, lines), PROBE) as job:
        def committed():
            status = status_of(job)
            return status if status and status["commit_seq"] == shards // 2 else None

        def again():
            status = status_of(job)
            return status is not None and status["master_incarnation"] > before["master_incarnation"]
        before = job.wait(f"{shards // 2:,} committed shards", committed, WAIT_SECONDS, 0.2)
        master, = processes.nodes(job.run.pid, PROBE)["master"]
        found = dict(zip(("memory_bytes", "memory_max_bytes"), processes.memory(master)))
        began = time.monotonic()
        os.kill(master, signal.SIGKILL)
        job.wait("answer of the next master", again, 120, 0.002)
        return found | {"serving_ms": (time.monotonic() - began) * 1000}


def measure(options, _, value, folder):
    """{figure: summary}."""
    os.makedirs(folder)
    lines = os.path.join(folder, "lines")
    ours.write_lines(lines, value, 9)
    found = []
    for number in range(options.rounds):
        run_folder = os.path.join(folder, str(number))
        found.append(one(options, value, lines, run_folder))
        if not options.keep:
            shutil.rmtree(run_folder)
    if not options.keep:
        os.remove(lines)
    return {figure: figures.summary([round_[figure] for round_ in found]) for figure in FIGURES}


def in_units(point):
    """[(name, unit, summary)] of LINES."""
    def megabytes(summary):
        return {key: number / 1e6 if key != "n" else number for key, number in summary.items()}
    summaries = (megabytes(point["memory_bytes"]), megabytes(point["memory_max_bytes"]), point["serving_ms"])
    return [(*line.split(", "), summary) for line, summary in zip(LINES, summaries)]


def heights(point):
    """Of LINES, where the plot has them."""
    return [summary["median"] for *_, summary in in_units(point)]


def text(point):
    for name, unit, summary in in_units(point):
        yield figures.line(name, summary, unit, 0)
