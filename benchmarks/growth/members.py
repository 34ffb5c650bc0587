"""What workers and servers cost the thread of the master that owns everything: master_members_bench says how it is measured. There are 16
partitions to a server."""

import json
import os
import subprocess

from scaling import figures
from scaling import job as jobs

BENCH = "benchmarks/master_members_bench"
PROGRAMS = (BENCH,)
LINES = ("restart of a server, ms of CPU", "restart of all servers, ms of CPU", "a steady second, ms of CPU")
FIGURES = ("one_server_ms", "all_servers_ms", "steady_ms")
WORKERS_OF_SERVER = 4
PARTITIONS_OF_SERVER = 16
DONE_OF_WORKER = 10


def arguments(workers):
    servers = max(1, workers // WORKERS_OF_SERVER)
    sizes = {"workers": workers, "servers": servers, "partitions": servers * PARTITIONS_OF_SERVER, "done": workers * DONE_OF_WORKER}
    return [word for name, size in sizes.items() for word in ("--" + name, str(size))]


def one(options, workers):
    """{figure: number}."""
    command = [os.path.join(options.build, BENCH), *arguments(workers), "--output", "json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=1800, check=False)
    if done.returncode != 0:
        raise jobs.Failed(f"{' '.join(command)} ended with code {done.returncode}")
    said = json.loads(done.stdout)
    return dict(zip(FIGURES, (said["one_server"]["cpu_ms"], said["all_servers"]["cpu_ms"], said["steady"]["cpu_ms_per_second"])))


def measure(options, _, value, _folder):
    """{figure: summary}."""
    found = [one(options, value) for _round in range(options.rounds)]
    return {figure: figures.summary([round_[figure] for round_ in found]) for figure in FIGURES}


def heights(point):
    """Of LINES, where the plot has them."""
    return [point[figure]["median"] for figure in FIGURES]


def text(point):
    for line, figure in zip(LINES, FIGURES):
        name, unit = line.split(", ")
        yield figures.line(name, point[figure], unit)
