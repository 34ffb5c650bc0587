#!/usr/bin/env python3
"""Runs the flights job, kills some of its processes when asked to, and prints its figures. Called by scripts/demo."""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import processes  # noqa: E402

TRAINER = "flights_trainer"
# When a share of all training records is done, a process of this role dies.
KILLS = ((0.15, "worker"), (0.40, "ps"), (0.65, "master"))
# What one process reaches on this data; see examples/flights/README.md.
PYTORCH = {"auc": 0.8154, "logloss": 0.4307}
AUC_MIN, LOG_LOSS_MAX = 0.81, 0.435


def training_share(muster, job):
    """Share of the training records that are done, or None while the master cannot be asked."""
    result = subprocess.run([muster, "status", job, "--output", "json"], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        return None
    try:
        datasets = json.loads(result.stdout)["datasets"]
    except (ValueError, KeyError):
        return None
    epochs = [epoch for dataset in datasets if dataset["mode"] == "train" for epoch in dataset["epochs"]]
    expected = sum(epoch["records_expected"] for epoch in epochs)
    return sum(epoch["records_done"] for epoch in epochs) / expected if expected else None


def kill_on_the_way(run, options, killed):
    """Kills one process after another as training proceeds; what was killed goes into `killed`."""
    start = time.monotonic()
    for share, role in KILLS:
        done = None
        while run.poll() is None and (done is None or done < share):
            time.sleep(0.1)
            done = training_share(options.muster, options.job)
        pids = processes.nodes(run.pid, TRAINER)[role]
        if run.poll() is not None or not pids:
            continue
        pid = random.choice(pids)
        if processes.send(pid, signal.SIGKILL):
            killed.append(f"{time.monotonic() - start:5.1f} s, {100 * done:.0f} % of training done: SIGKILL {role} (process {pid})")


def report(summary, killed):
    """Prints the figures; returns whether they are what they should be."""
    good = str(summary["state"]).lower() == "succeeded"
    print(f"\n{'':34}{'this job':>12}{'1 PyTorch process, 2 epochs':>30}")
    tests = [epoch for dataset in summary["datasets"] if dataset["mode"] == "evaluate" for epoch in dataset["epochs"]]
    for epoch in tests:
        metrics = epoch["metrics"]
        last = epoch is tests[-1]
        for name, label in (("auc", "test AUC"), ("logloss", "test log loss")):
            value = metrics.get(name)
            beside = f"{PYTORCH[name]:30.4f}" if last else ""
            print(f"  {label + ' after epoch ' + str(epoch['epoch'] + 1):32}{value if value is not None else float('nan'):12.4f}{beside}")
        if last:
            good = good and metrics.get("auc", 0) >= AUC_MIN and metrics.get("logloss", 9) <= LOG_LOSS_MAX
    print()
    for dataset in summary["datasets"]:
        for epoch in dataset["epochs"]:
            exact = epoch["records_committed"] == epoch["records_expected"]
            good = good and exact
            note = "" if exact else "   <-- not equal"
            print(f"  {dataset['name']} epoch {epoch['epoch'] + 1}: records committed / expected  "
                  f"{epoch['records_committed']:,} / {epoch['records_expected']:,}{note}")
    restarts, waiting = summary["restarts"], summary.get("waiting", {})
    print(f"\n  minibatches delivered again   {summary['counters']['redelivered_minibatches']}")
    print("  restarts                      " + ", ".join(f"{role} {count}" for role, count in restarts.items()))
    print(f"  wall time                     {summary['seconds']:.1f} s")
    if "records_per_second" in summary:
        print(f"  training rate                 {summary['records_per_second']:,.0f} records/s")
    if waiting:
        print("  workers' time spent waiting   " + ", ".join(f"for {what} {100 * share:.1f} %" for what, share in waiting.items()))
    if killed:
        print("\nKilled on the way:")
        print("\n".join("  " + line for line in killed))
    print(f"\nThe target, AUC >= {AUC_MIN} and log loss <= {LOG_LOSS_MAX} with every record committed exactly once: " + ("reached." if good else "MISSED."))
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, epilog="Example: scripts/demo --kill")
    parser.add_argument("--muster", required=True)
    parser.add_argument("--job", required=True)
    parser.add_argument("--state", required=True)
    parser.add_argument("--kill", action="store_true")
    options = parser.parse_args()

    run = subprocess.Popen([options.muster, "run", options.job])
    # Ctrl-C goes to the whole foreground group: `muster run` drains, and this script waits for it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    killed = []
    killer = threading.Thread(target=kill_on_the_way, args=(run, options, killed))
    if options.kill:
        killer.start()
    code = run.wait()
    if options.kill:
        killer.join()
    if code != 0:
        print(f"demo: muster run ended with exit code {code}; logs are in {os.path.abspath(options.state)}/logs", file=sys.stderr)
        return code
    with open(os.path.join(options.state, "summary.json"), encoding="utf-8") as file:
        good = report(json.load(file), killed)
    if options.kill and len(killed) < len(KILLS):
        print(f"demo: only {len(killed)} of {len(KILLS)} processes were killed before training ended", file=sys.stderr)
        return 1
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
