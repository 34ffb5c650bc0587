#!/usr/bin/env python3
"""The closed form under a storm of faults: real binaries, real signals, exact weights. Python's standard library only.

Starts `muster run` on generated data (two servers, two workers, several epochs, shuffled), then kills (SIGKILL) or pauses
(SIGSTOP beyond the lease, then SIGCONT) workers, servers and the master at seeded random moments. At the end every row of every
exported table must equal what closed_form.py computes from the input, and the run only counts when the rare paths were
taken: a replay, a re-verification, a skipped part, a re-asserted lease.

With --planted-bug the master breaks one rule of the protocol on purpose and the same comparison must see it.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import closed_form  # noqa: E402
import processes  # noqa: E402

EPOCHS = 3
LEASE_SECONDS = 1.5
JOB = """apiVersion: muster/v1
kind: TrainingJob
metadata: {{name: closed-form}}
spec:
  seed: {seed}
  partitions: 64
  stateDirectory: state
  snapshots: {{directory: state/snapshots, interval: 700ms}}
  datasets:
    - {{name: numbers, files: ["numbers-*.txt"], epochs: {epochs}, minibatchSize: 32, minibatchesPerShard: 8, shuffle: true}}
  leases: {{duration: 1500ms, gracePeriod: 1s, heartbeatInterval: 100ms}}
  servers: {{timeout: 1500ms, heartbeatInterval: 100ms}}
  restarts: {{crashLoopExits: 100, backoffInitial: 100ms, backoffMax: 500ms}}
  replicaSpecs:
    ps:     {{replicas: 2}}
    worker: {{replicas: 2, command: ["{trainer}", --slow-us, "{slow_us}"]}}
"""


def fail(message):
    print(f"FAILED: {message}", flush=True)
    sys.exit(1)


def write_input(folder, rng, records):
    """Four files of different lengths; some numbers occur more than once, so that hot rows exist."""
    paths = []
    cuts = sorted(rng.sample(range(1, records), 3))
    for number, (begin, end) in enumerate(zip([0] + cuts, cuts + [records])):
        paths.append(os.path.join(folder, f"numbers-{number}.txt"))
        with open(paths[-1], "w", encoding="ascii") as file:
            for i in range(begin, end):
                file.write(f"{i if i % 10 else rng.randrange(records)}\n")
    return paths


def plan_faults(rng, options):
    """(role, signal) in random order: as many of each kind as of any other. A planted bug needs dying servers only."""
    if options.planted_bug:
        return [("ps", signal.SIGKILL)] * options.faults
    kinds = [(role, number) for role in ("worker", "ps", "master") for number in (signal.SIGKILL, signal.SIGSTOP)]
    faults = [kinds[i % len(kinds)] for i in range(options.faults)]
    rng.shuffle(faults)
    return faults


def pick(run, role, trainer, rng):
    """A process of that role that lives and is not paused; None when the run ended. Relaunches take a moment."""
    end = time.monotonic() + 60
    while run.poll() is None:
        pids = [pid for pid in processes.nodes(run.pid, trainer)[role] if not processes.paused(pid)]
        if pids:
            return rng.choice(pids)
        if time.monotonic() > end:
            fail(f"no running {role} process for 60 s: was it not relaunched?")
        time.sleep(0.05)
    return None


def storm(run, faults, trainer, rng):
    """Applies the faults one after another, pauses overlapping what follows; returns how many were applied."""
    timers = []
    applied = 0
    start = time.monotonic()
    for role, number in faults:
        time.sleep(rng.uniform(0.2, 1.2))
        pid = pick(run, role, trainer, rng)
        if pid is None or not processes.send(pid, number):
            if run.poll() is not None:
                break
            continue
        applied += 1
        print(f"{time.monotonic() - start:6.1f} s  {signal.Signals(number).name} {role} {pid}", flush=True)
        if number == signal.SIGSTOP:
            pause = rng.uniform(1.2, 2.0) * LEASE_SECONDS
            timers.append(threading.Timer(pause, processes.send, (pid, signal.SIGCONT)))
            timers[-1].start()
    for timer in timers:
        timer.join()
    return applied


def number_of(summary, name):
    """A counter of the summary; they may be nested under `counters`."""
    return int(summary.get("counters", {}).get(name, summary.get(name, 0)))


def check_summary(path, records, wanted):
    """The ledger is complete and the rare paths were taken."""
    with open(path, encoding="utf-8") as file:
        summary = json.load(file)
    if str(summary["state"]).lower() != "succeeded":
        fail(f"the job ended as {summary['state']}: {summary.get('reason', '')}")
    epochs = [epoch for dataset in summary["datasets"] for epoch in dataset["epochs"]]
    if len(epochs) != EPOCHS:
        fail(f"{len(epochs)} epochs in the summary, expected {EPOCHS}")
    for epoch in epochs:
        if int(epoch["expected"]) != records or int(epoch["committed"]) != records:
            fail(f"epoch {epoch}: expected and committed should both be {records}")
    counters = {name: number_of(summary, name) for name in wanted}
    print(f"counters: {counters}, redelivered minibatches {summary.get('redelivered_minibatches')}, restarts {summary.get('restarts')}")
    for name, value in counters.items():
        if value == 0:
            fail(f"{name} is 0: this run did not take the path that it is there for")


def tail(path, lines=40):
    with open(path, encoding="utf-8", errors="replace") as file:
        return "".join(file.readlines()[-lines:])


def run_job(folder, options, rng):
    """Writes data and job, runs it under the storm, and returns the input's paths. The job must succeed."""
    paths = write_input(folder, rng, options.records)
    job = os.path.join(folder, "job.yaml")
    with open(job, "w", encoding="utf-8") as file:
        file.write(JOB.format(seed=options.seed, epochs=EPOCHS, trainer=options.trainer, slow_us=options.slow_us))
    command = [options.muster, "run", job, "--no-progress"]
    if options.planted_bug:
        command += ["--planted-bug", options.planted_bug]
    log = os.path.join(folder, "run.log")
    with open(log, "w", encoding="utf-8") as output:
        run = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=folder, stdin=subprocess.DEVNULL)
    try:
        faults = plan_faults(rng, options)
        applied = storm(run, faults, os.path.basename(options.trainer), rng)
        try:
            code = run.wait(timeout=options.timeout)
        except subprocess.TimeoutExpired:
            fail(f"the job did not end within {options.timeout} s after the last fault\n{tail(log)}")
    finally:
        processes.stop_group(run)
    if left := processes.wait_gone(processes.working_under(folder), 10):
        fail(f"processes outlived the run: {[(pid, processes.command_line(pid)) for pid in left]}")
    if code != 0:
        fail(f"muster run ended with {code}\n{tail(log)}")
    if applied < options.faults_min:
        fail(f"{applied} faults before the job ended, at least {options.faults_min} are needed: give it more records")
    print(f"{applied} faults applied", flush=True)
    return paths


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Example: closed_form_test.py --muster build/dev/cli/muster --trainer build/dev/examples/counter/counter_trainer",
    )
    parser.add_argument("--muster", required=True, help="the muster executable")
    parser.add_argument("--trainer", required=True, help="the counter_trainer executable")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", type=int, default=24)
    parser.add_argument("--faults-min", type=int, default=20)
    parser.add_argument("--records", type=int, default=40000)
    parser.add_argument("--slow-us", type=int, default=20000, help="extra time of a minibatch")
    parser.add_argument("--timeout", type=float, default=240, help="seconds from the last fault to the end of the job")
    parser.add_argument("--planted-bug", default="", help="break this rule (no-reverify) and expect a difference")
    parser.add_argument("--keep", action="store_true", help="leave the folder of the run behind")
    options = parser.parse_args()
    if options.planted_bug:
        options.faults_min = min(options.faults_min, options.faults // 2)
    options.muster, options.trainer = os.path.abspath(options.muster), os.path.abspath(options.trainer)

    rng = random.Random(options.seed)
    folder = tempfile.mkdtemp(prefix="muster-closed-form-")
    print(f"folder {folder}, seed {options.seed}", flush=True)
    paths = run_job(folder, options, rng)
    wanted = ["replayed_shards", "reverified_runs", "parts_skipped", "reasserted_leases"]
    check_summary(os.path.join(folder, "state", "summary.json"), options.records, [] if options.planted_bug else wanted)
    export = os.path.join(folder, "export")
    subprocess.run([options.muster, "export", os.path.join(folder, "job.yaml"), "--output-dir", export], check=True)
    differences, compared = closed_form.compare(paths, EPOCHS, export)
    for line in differences[:10]:
        print(line[:300])
    print(f"{compared} rows compared, {len(differences)} differ", flush=True)
    if options.planted_bug and not differences:
        fail(f"with the planted bug {options.planted_bug} the weights are still exact: the check sees nothing")
    if differences and not options.planted_bug:
        fail(f"the weights are not the closed form; the run is in {folder}")
    if not options.keep:
        subprocess.run(["rm", "-rf", folder], check=False)
    print("PASSED")


if __name__ == "__main__":
    main()
