#!/usr/bin/env python3
"""ElasticDDP beside PyTorch's DistributedDataParallel (Gloo), in turns: two processes that train 10 million parameters on this machine.

Each process has a thread of its own, and both sides see the same inputs, model and optimizer (SGD with momentum, float32). The figures
are the time of a step, and what the kill of one member costs the other one until its next step, beyond a step: DistributedDataParallel
does not go on after that.

Progress goes to stderr, figures to stdout. Exit codes: 0 measured, 2 bad arguments, 3 a measurement did not come to its end, 130
interrupted.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import time

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "benchmarks"))
from scaling import figures, job  # noqa: E402
from scaling.job import processes  # noqa: E402

TRAINER = os.path.join(ROOT, "benchmarks", "speed", "elastic_ddp_trainer.py")
RECORDS = 16  # of a minibatch, as in the trainer
WARM_UP = 5  # steps
PATIENCE_SECONDS = 300


def spec(options, folder):
    name = os.path.basename(options.python)
    return {"apiVersion": "muster/v1", "kind": "TrainingJob", "metadata": {"name": "elastic-ddp"}, "spec": {
        "stateDirectory": "state",
        "datasets": [{"name": "train", "records": 2 * RECORDS * options.steps, "minibatchSize": RECORDS}],
        "group": {"globalBatch": 2 * RECORDS, "minMembers": 1, "joinWait": "60s", "balance": False},
        "replicaSpecs": {"worker": {"replicas": 2, "command": [options.python, TRAINER, "muster", folder]}}}}, name


def ends(path):
    """The ends of the steps that a process has done, in seconds."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="ascii") as file:
        return [int(line) / 1e9 for line in file if line.endswith("\n")]


def step_ms(found):
    """Of steps after the warm-up: the median."""
    gaps = [1e3 * (after - before) for before, after in zip(found[WARM_UP:], found[WARM_UP + 1:])]
    return figures.summary(gaps)["median"]


def wait_for(process, what, ready):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            raise job.Failed(f"no {what}: the run has {'ended' if process.poll() is not None else 'not come so far'}")
        time.sleep(0.01)


def ours(options, folder, *, kill):
    """(the ends of the steps of worker-0, when worker-1 was killed). Both train from the first step of worker-1 on."""
    os.makedirs(folder)
    made, program = spec(options, folder)
    with open(os.path.join(folder, "job.yaml"), "w", encoding="ascii") as file:
        json.dump(made, file)
    muster = os.path.join(options.build, "cli", "muster")
    with open(os.path.join(folder, "run.log"), "wb") as log:
        run = subprocess.Popen([muster, "run", "job.yaml", "--no-progress"], cwd=folder, stdout=log, stderr=log)
    try:
        survivor, victim = (os.path.join(folder, f"worker-{number}.steps") for number in range(2))
        killed = None
        if kill:
            wait_for(run, "steps of two members", lambda: len(ends(victim)) > 2 * WARM_UP and len(ends(survivor)) > 2 * WARM_UP)
            # worker-1's process, by its folder of the node in the environment.
            pids = [pid for pid in processes.nodes(run.pid, program)["worker"] if node_of(pid) == "worker-1"]
            killed = time.monotonic()
            os.kill(pids[0], signal.SIGKILL)
            wait_for(run, "steps after the kill", lambda: ends(survivor)[-1] > killed + 2)
        else:
            run.wait(timeout=PATIENCE_SECONDS)
        return ends(survivor), killed
    finally:
        processes.stop_group(run)


def node_of(pid):
    with open(f"/proc/{pid}/environ", "rb") as file:
        return next((text[12:].decode() for text in file.read().split(b"\0") if text.startswith(b"MUSTER_NODE=")), "")


def ddp(options, folder):
    """The ends of the steps of rank 0."""
    os.makedirs(folder)
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    ranks = [subprocess.Popen([options.python, TRAINER, "ddp", folder, str(rank), str(port), str(options.steps)], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE) for rank in range(2)]
    try:
        for rank in ranks:
            if rank.wait(timeout=PATIENCE_SECONDS) != 0:
                raise job.Failed(f"a rank ended with {rank.returncode}: {rank.stderr.read()[-2000:].decode(errors='replace')}")
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    return ends(os.path.join(folder, "rank-0.steps"))


def cost_of_kill(found, killed):
    """Milliseconds by which the longest step in the second after the kill exceeds a step of the time before. The step that is under way at
    the kill may have all sums already; then the next one is the long one."""
    before = [end for end in found if end < killed]
    near = [before[-1], *(end for end in found if killed <= end)]
    gaps = [after - last for last, after in zip(near, near[1:]) if last < killed + 1]
    return 1e3 * max(gaps) - step_ms(before)


def measure(options, folder):
    taken = {"ours": [], "ddp": [], "kill": []}
    for number in range(options.rounds):
        turns = {"ours": lambda place: step_ms(ours(options, place, kill=False)[0]), "ddp": lambda place: step_ms(ddp(options, place)),
                 "kill": lambda place: cost_of_kill(*ours(options, place, kill=True))}
        for what in list(turns) if number % 2 == 0 else list(turns)[::-1]:
            taken[what].append(turns[what](os.path.join(folder, f"{number}-{what}")))
        job.say(f"{number + 1}/{options.rounds} " + ", ".join(f"{what} {values[-1]:.1f} ms" for what, values in taken.items()))
    ratios = [theirs / own for own, theirs in zip(taken["ours"], taken["ddp"])]
    found = {what: figures.summary(values) for what, values in taken.items()} | {"ratio": figures.summary(ratios)}
    if options.output == "json":
        print(json.dumps(found))
    else:
        print(figures.line("step of ElasticDDP", found["ours"], "ms", 1))
        print(figures.line("step of DistributedDataParallel (Gloo)", found["ddp"], "ms", 1))
        print(figures.line("ratio", found["ratio"], "times as fast as DistributedDataParallel", 2))
        print(figures.line("kill of a member: the longest step after it, beyond a step", found["kill"], "ms", 0))
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="example: benchmarks/speed/elastic_ddp.py --build build/dev --python build/dev/wheel/torch/bin/python")
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"), help="build folder with the programs")
    parser.add_argument("--python", required=True, help="a Python with PyTorch and the wheel, for example build/dev/wheel/torch/bin/python")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--output", choices=("text", "json"), default="text")
    parser.add_argument("--keep", action="store_true", help="keep the folder")
    options = parser.parse_args()
    if options.rounds < 1 or options.steps <= 3 * WARM_UP:
        parser.error(f"--rounds is at least 1, --steps more than {3 * WARM_UP}")
    options.build, options.python = os.path.abspath(options.build), os.path.abspath(options.python)
    return job.in_folder("elastic_ddp.py", "elastic-ddp", options.keep, lambda folder: measure(options, folder))


if __name__ == "__main__":
    sys.exit(main())
