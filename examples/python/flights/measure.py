"""Trains the flights in turns: this example, the C++ one (if --cpp names its trainer), and plain PyTorch that shares nothing.

    measure.py FOLDER [--rounds 3] [--cpp build/release/examples/flights/flights_trainer]

FOLDER has train.csv and test.csv (examples/flights/prepare_data writes them). Prints the test AUC of each job and its records a
second, from the first minibatch of any worker to the end of the last one; and the ratio to plain PyTorch in the same round.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MUSTER = os.path.join(sysconfig.get_path("scripts"), "muster")
SEEDED = re.compile(r"^  seed: \d+$", re.M)


def run_job(data: str, seed: int, command: list[str]) -> tuple[float, float | None]:
    """(test AUC, records a second or None) of a job in a fresh folder."""
    folder = tempfile.mkdtemp(prefix="muster-flights-")
    try:
        for name in ("train.csv", "test.csv"):
            os.symlink(os.path.join(data, name), os.path.join(folder, name))
        for name in ("deepfm.py", "flight_records.py", "flights_trainer.py"):
            shutil.copy(os.path.join(HERE, name), folder)
        with open(os.path.join(HERE, "job.yaml"), encoding="utf-8") as file:
            text = SEEDED.sub(f"  seed: {seed}", file.read()).replace("[python3, flights_trainer.py]", json.dumps(command))
        with open(os.path.join(folder, "job.yaml"), "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run([MUSTER, "run", "job.yaml"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"measure.py: the job has failed:\n{done.stdout[-2000:]}")
        with open(os.path.join(folder, "state", "summary.json"), encoding="utf-8") as file:
            auc = float(json.load(file)["metrics"]["test"]["auc"])
        return auc, rate_of(folder)
    finally:
        shutil.rmtree(folder)


def rate_of(folder: str) -> float | None:
    """From what the workers have printed, in their logs."""
    found = []
    for place, _, names in os.walk(os.path.join(folder, "state")):
        for name in names:
            if name.endswith(".log"):
                with open(os.path.join(place, name), encoding="utf-8", errors="replace") as file:
                    found += re.findall(r"^.*trained (\d+) records from ([\d.]+) to ([\d.]+)$", file.read(), re.M)
    found = [line for line in found if int(line[0]) > 0]
    if not found:
        return None
    return sum(int(records) for records, _, _ in found) / (max(float(end) for *_, end in found) - min(float(begin) for _, begin, _ in found))


def run_local(data: str) -> tuple[float, float]:
    done = subprocess.run([sys.executable, os.path.join(HERE, "flights_local.py"), data], stdout=subprocess.PIPE, text=True, check=True)
    figures = re.search(r"(\d+) records/s, test AUC of each ([\d.]+)", done.stdout)
    if figures is None:
        sys.exit(f"measure.py: flights_local.py has printed no figures:\n{done.stdout}")
    return float(figures[2]), float(figures[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=os.path.realpath)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cpp", metavar="FLIGHTS_TRAINER", type=os.path.realpath, help="the trainer of examples/flights")
    options = parser.parse_args()
    aucs: dict[str, list[float]] = {"pytorch": [], "c++": [], "local": []}
    ratios: list[float] = []
    for seed in range(1, options.rounds + 1):
        auc, rate = run_job(options.folder, seed, [sys.executable, "flights_trainer.py"])
        if rate is None:
            sys.exit("measure.py: the workers have not printed what they trained")
        local_auc, local_rate = run_local(options.folder)
        aucs["pytorch"].append(auc)
        aucs["local"].append(local_auc)
        ratios.append(rate / local_rate)
        if options.cpp:
            aucs["c++"].append(run_job(options.folder, seed, [options.cpp])[0])
        cpp = f", C++ AUC {aucs['c++'][-1]:.4f}" if options.cpp else ""
        print(f"{seed}: AUC {auc:.4f}, {rate:.0f} records/s; local AUC {local_auc:.4f}, {local_rate:.0f} records/s, ratio {ratios[-1]:.2f}{cpp}", flush=True)
    for name, values in aucs.items():
        if values:
            print(f"{name}: mean AUC {statistics.mean(values):.4f}, from {min(values):.4f} to {max(values):.4f}")
    print(f"records a second, beside plain PyTorch: median {statistics.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f}")


if __name__ == "__main__":
    main()
