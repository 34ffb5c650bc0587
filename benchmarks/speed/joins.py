#!/usr/bin/env python3
"""How long a member of a group that was killed takes until it trains again, with steps of a part or a multiple of the interval of snapshots.

The group of tests/integration/groups: three members, whose minibatches sleep. Both times begin at the kill, so they hold the start of the
process, too. Python's standard library only.

Examples:
  benchmarks/speed/joins.py --build build/release
  benchmarks/speed/joins.py --build build/dev --ratios 1 --rounds 1 --interval 1
"""

import argparse
import os
import random
import signal
import statistics
import sys
import time

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration", "groups"))
import group_test  # noqa: E402

MEMBERS = 3
VICTIM = f"worker-{MEMBERS - 1}"


def step_of(job):
    return ((job.status() or {}).get("group") or {"step": 0})["step"]


def wait_member(job, run, pid):
    """Until the victim is a member, with another pid than this one, and the step of the group that it made first."""
    while run.poll() is None:
        now = job.pids("worker").get(VICTIM)
        process = job.group_processes().get(VICTIM)
        if now not in (None, pid) and process is not None and process["standing"] == "member":
            return step_of(job)
        time.sleep(0.05)
    raise SystemExit(f"the run has ended\n{job.said()}")


def measure(args, ratio, seed):
    """(seconds, steps) from the kill until the victim is a member again."""
    seconds = ratio * args.interval
    # A member has at most this many of the minibatches of a step.
    share = -(-group_test.MINIBATCHES // MEMBERS)
    with group_test.GroupJob(args, seed=seed, records=200_000, epochs=1, slow_us=int(1e6 * seconds / share), members=MEMBERS) as job:
        job.snapshots["interval"] = f"{int(1000 * args.interval)}ms"
        job.write_data(random.Random(seed))
        job.write_job()
        run = job.start("--no-progress")
        wait_member(job, run, None)
        while step_of(job) < 3:
            time.sleep(0.05)
        pid, before, began = job.pids("worker")[VICTIM], step_of(job), time.monotonic()
        os.kill(pid, signal.SIGKILL)
        steps = wait_member(job, run, pid) - before
        taken = time.monotonic() - began
        job.kill(run)
    return taken, steps


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True, type=os.path.abspath)
    parser.add_argument("--interval", type=float, default=2, help="of snapshots, in seconds")
    parser.add_argument("--ratios", default="0.5,1,2", help="a step's length in intervals")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    args.muster = os.path.join(args.build, "cli", "muster")
    args.trainer = os.path.join(args.build, "tests", "integration", "groups", "group_trainer")
    seen = {float(text): [] for text in args.ratios.split(",")}
    for number in range(args.rounds):
        for ratio in seen:
            seen[ratio].append(measure(args, ratio, 50 + number))
            taken, steps = seen[ratio][-1]
            print(f"steps of {ratio:g} intervals ({ratio * args.interval:g} s): a member again after {taken:.1f} s, {steps} steps", flush=True)
    for ratio, runs in seen.items():
        taken = [seconds for seconds, _ in runs]
        print(f"{ratio:g} intervals: median {statistics.median(taken):.1f} s ({min(taken):.1f} to {max(taken):.1f}), "
              f"{statistics.median(steps for _, steps in runs):g} steps")


if __name__ == "__main__":
    main()
