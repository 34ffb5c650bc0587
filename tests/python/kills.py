#!/usr/bin/env python3
"""Kills processes of jobs whose workers are Python with PyTorch, and checks that each record took effect exactly once.

Of the flights' model, workers, servers, the master and the scaler are killed with SIGKILL, evenly over the data. Each record adds 1 to a
row of its own, so the exported weights say how often each took effect. Then the members of a group are killed that trains with
ElasticDDP, and its master; the bits of all its state must be those of an undisturbed group.

Not a test of CTest, because it takes minutes. Needs the environment that python_torch_test makes. Exit codes: 0 all is exact, 1 it is
not, 2 bad arguments, 3 a job did not come to its end, 130 interrupted.
"""

import argparse
import os
import random
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "benchmarks"))
from scaling import job as jobs  # noqa: E402
from scaling.job import closed_form, processes  # noqa: E402

PATIENCE_SECONDS = 1800
MINIBATCH = 256
RESTARTS = {"crashLoopExits": 1000, "backoffInitial": "0s", "backoffMax": "0s"}


def spec(options, mode, folder, records, epochs, slow, roles, **more):
    path = os.pathsep.join([HERE, os.path.join(ROOT, "examples", "python", "flights")])
    worker = {"replicas": 2, "command": [options.python, os.path.join(HERE, "kills_trainer.py"), mode, folder],
              "env": {"SLOW_SECONDS": str(slow), "PYTHONPATH": path}}
    return {"stateDirectory": "state", "seed": options.seed, "snapshots": {"interval": "2s"}, "restarts": RESTARTS,
            "datasets": [{"name": "train", "records": records, "epochs": epochs, "minibatchSize": MINIBATCH, "minibatchesPerShard": 8,
                          "shuffle": True}],
            "replicaSpecs": {"worker": worker} | roles} | more


def run(options, folder, made, total, roles, kills):
    """The job, undisturbed or with kills of the roles in turn. Returns the job and how many kills there were."""
    rng = random.Random(options.seed)
    killed = 0
    with jobs.Job(options, folder, made, os.path.basename(options.python)) as job:
        for number in range(kills):
            share = (number + 1) * total // (kills + 1)
            role = roles[number % len(roles)]
            job.wait(f"{share} records", lambda share=share: (job.done() or 0) >= share, PATIENCE_SECONDS, 0.05)
            pids = job.wait(f"a process of {role}", lambda role=role: processes.nodes(job.run.pid, job.trainer)[role])
            killed += processes.send(rng.choice(pids), signal.SIGKILL)
        jobs.require_exact(job.finish(PATIENCE_SECONDS))
    return job, killed


def check_rows(options, folder):
    subprocess.run([os.path.join(ROOT, "examples", "flights", "prepare_data"), folder], check=True, stdout=sys.stderr)
    with open(os.path.join(folder, "train.csv"), "rb") as file:
        records = sum(1 for _ in file) - 1
    made = spec(options, "rows", folder, records, options.epochs, options.slow, {"ps": {"replicas": 2}})
    job, killed = run(options, os.path.join(folder, "rows"), made, records * options.epochs, ("worker", "ps", "master", "scaler"), options.kills)
    export = os.path.join(folder, "export")
    job.say("export", "--output-dir", export)
    keys, values = (closed_form.Npy(os.path.join(export, f"seen.{name}.npy")).values for name in ("keys", "values"))
    counts = dict(zip(keys, values))
    missing = sum(counts.get(number, 0) < options.epochs for number in range(records))
    doubled = sum(counts.get(number, 0) > options.epochs for number in range(records)) + len(set(keys) - set(range(records)))
    restarts = job.summary()["restarts"]
    print(f"rows: {records:,} records, {options.epochs} passes, {killed} kills, restarts {restarts}: {missing} records with too few effects, "
          f"{doubled} with too many")
    return missing == doubled == 0


def weights(folder):
    found = {name: open(os.path.join(folder, name), encoding="ascii").read() for name in os.listdir(folder) if name.startswith("weights-")}
    if not found:
        raise jobs.Failed(f"no member has the last weights: {folder}")
    return set(found.values())


def check_group(options, folder):
    records, digests = 2 * MINIBATCH * options.steps, []
    for kills in (0, options.kills):
        place = os.path.join(folder, f"group-{kills}")
        made = spec(options, "group", place, records, 1, options.slow if kills else 0, {},
                    group={"globalBatch": 2 * MINIBATCH, "minMembers": 1, "joinWait": "60s", "balance": False})
        made["datasets"][0].pop("minibatchesPerShard")
        _, killed = run(options, place, made, records, ("worker", "worker", "master"), kills)
        digests.append(weights(place))
    same = len(digests[0]) == 1 and digests[0] == digests[1]
    print(f"group: {options.steps} steps of ElasticDDP, {killed} kills: the state is {'bit-identical' if same else 'NOT the same'}")
    return same


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="example: tests/python/kills.py --build build/dev --python build/dev/wheel/torch/bin/python --kills 50")
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "dev"), help="build folder with the programs")
    parser.add_argument("--python", required=True, help="a Python with PyTorch and the wheel")
    parser.add_argument("--kills", type=int, default=50, help="of each job (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=2, help="passes over the flights (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=1000, help="of the group (default: %(default)s)")
    parser.add_argument("--slow", type=float, default=0.1, help="seconds that a minibatch takes longer (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=("rows", "group"))
    parser.add_argument("--keep", action="store_true", help="keep the folder")
    options = parser.parse_args()
    options.build, options.python = os.path.abspath(options.build), os.path.abspath(options.python)
    checks = {"rows": check_rows, "group": check_group}

    def work(folder):
        return 0 if all([check(options, folder) for name, check in checks.items() if options.only in (None, name)]) else 1

    return jobs.in_folder("kills.py", "python-kills", options.keep, work)


if __name__ == "__main__":
    sys.exit(main())
