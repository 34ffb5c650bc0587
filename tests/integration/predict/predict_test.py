#!/usr/bin/env python3
"""Outputs of predictions under kills: each appears once, and is what it is without any. Python's standard library only.

A job trains every record number EPOCHS times, which adds up in the number's row, and then predicts with these rows. So the outputs are
known: in the order of their names, the objects hold every number once and in order, each with EPOCHS.
"""

import argparse
import glob
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "scripts", "lib"))
import processes  # noqa: E402

EPOCHS = 2
ROLES = ("ps", "worker", "master", "ps", "worker", "scaler")
DEADLINE_SECONDS = 400


def job_of(options, folder):
    dataset = {"name": "train", "records": options.records, "epochs": EPOCHS, "minibatchSize": 500, "shuffle": True}
    predict = {"name": "new", "records": options.records, "mode": "predict", "output": "outputs", "minibatchSize": 500,
               "minibatchesPerShard": 4}
    return {"apiVersion": "muster/v1", "kind": "TrainingJob", "metadata": {"name": "predict"}, "spec": {
        "stateDirectory": "state", "seed": options.seed, "datasets": [predict, dataset], "snapshots": {"interval": "1s"},
        "leases": {"duration": "2s", "heartbeatInterval": "200ms", "failuresMax": 100},
        "restarts": {"crashLoopExits": 100, "backoffInitial": "100ms", "backoffMax": "500ms"},
        "replicaSpecs": {"ps": {"replicas": 2}, "worker": {"replicas": 2, "command": [options.trainer],
                                                           "env": {"SLOW": os.path.join(folder, "slow")}}}}}


def outputs(folder):
    return sorted(glob.glob(os.path.join(folder, "outputs", "new-*.npy")))


def wait_for(run, what, ready):
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not ready():
        if run.poll() is not None:
            raise AssertionError(f"the run ended with {run.returncode} before there were {what}")
        if time.monotonic() > deadline:
            raise AssertionError(f"there were no {what} in {DEADLINE_SECONDS} s")
        time.sleep(0.01)


def kill_one(run, role, trainer, rng):
    """SIGKILL to a process of the role; waits until there is one."""
    pids = []
    wait_for(run, f"{role} to kill", lambda: pids.extend(processes.nodes(run.pid, trainer)[role]) or pids)
    os.kill(rng.choice(pids), signal.SIGKILL)


def rows_of(path):
    """[(number, count)] of a .npy file of float32 [rows, 2], version 1.0."""
    with open(path, "rb") as file:
        magic, length = file.read(8), struct.unpack("<H", file.read(2))[0]
        header = file.read(length).decode()
        if magic != b"\x93NUMPY\x01\x00" or "'<f4'" not in header:
            raise AssertionError(f"{path} is no array of float32: {header}")
        numbers = [value for (value,) in struct.iter_unpack("<f", file.read())]
    return list(zip(numbers[::2], numbers[1::2]))


def require_outputs(folder, records):
    found = [row for path in outputs(folder) for row in rows_of(path)]
    expected = [(float(number), float(EPOCHS)) for number in range(records)]
    if found != expected:
        wrong = sum(row[1] != EPOCHS for row in found)
        seen = len(set(row[0] for row in found))
        raise AssertionError(f"{len(found)} outputs of {seen} records of {records}, {wrong} of weights that lacked something")


def require_nothing_else(folder):
    left = set(os.listdir(os.path.join(folder, "outputs"))) - {os.path.basename(path) for path in outputs(folder)} - {"muster-job"}
    if left:
        raise AssertionError(f"left behind among the outputs: {sorted(left)}")


def predict(options, folder, rng):
    with open(os.path.join(folder, "job.yaml"), "w", encoding="ascii") as file:
        json.dump(job_of(options, folder), file)
    with open(os.path.join(folder, "slow"), "w", encoding="ascii"):
        pass
    with open(os.path.join(folder, "run.log"), "w", encoding="ascii") as log:
        run = subprocess.Popen([options.muster, "run", "job.yaml", "--no-progress"], cwd=folder, stdout=log, stderr=subprocess.STDOUT)
    try:
        shards = -(-options.records // 2000)
        for kill in range(options.kills):
            wait_for(run, f"outputs before kill {kill}", lambda: len(outputs(folder)) >= (kill + 1) * shards // (options.kills + 2))
            kill_one(run, ROLES[kill % len(ROLES)], os.path.basename(options.trainer), rng)
        os.remove(os.path.join(folder, "slow"))
        if run.wait(timeout=DEADLINE_SECONDS) != 0:
            raise AssertionError(f"the run ended with {run.returncode}")
    finally:
        processes.stop_group(run)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="Example: predict_test.py --muster build/dev/cli/muster "
                                     "--trainer build/dev/tests/integration/predict/predict_trainer --records 1000000 --kills 20")
    parser.add_argument("--muster", required=True, type=os.path.abspath)
    parser.add_argument("--trainer", required=True, type=os.path.abspath)
    parser.add_argument("--records", type=int, default=60_000)
    parser.add_argument("--kills", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    folder = os.path.realpath(tempfile.mkdtemp(prefix="muster-predict-"))
    print(f"folder {folder}, seed {options.seed}", flush=True)
    predict(options, folder, random.Random(options.seed))
    require_outputs(folder, options.records)
    require_nothing_else(folder)
    print(f"{options.records} records under {options.kills} kills: no output missing, none twice, none of other weights")
    shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
