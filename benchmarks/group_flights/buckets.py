"""The same gradient in more and more buckets: two members add 1 Mi numbers in a step, and compute nothing. A trainer whose model has hundreds
of parameters gives each a bucket. A round runs one job after the other, whose journals are in memory; the rate is the steps in a window."""

import os
import time

from group_flights import run, steps
from scaling import figures
from scaling import job as jobs

WHAT = "the step rate with 1 to 2,000 buckets of 1 Mi numbers together"
PROGRAMS = ("benchmarks/group_member",)
MEMBERS = 2
ELEMENTS = 1 << 20
BUCKETS = (1, 10, 100, 500, 2000)
GOALS = {500: 0.8}  # of the rate with one bucket
WARM_UP = 20  # steps


def rate(options, folder, buckets):
    """Steps a second."""
    with run.Run(options, folder, MEMBERS, group={"minMembers": MEMBERS, "balance": False},
                 trainer=["--elements", ELEMENTS, "--buckets", buckets]) as one:
        one.wait_steps(WARM_UP)
        begin = time.monotonic_ns()
        time.sleep(2 * options.seconds)
        end = time.monotonic_ns()
        mean = steps.mean_ms(max(one.steps().values(), key=len), begin, end)
    if mean is None:
        raise jobs.Failed(f"fewer than two steps in {2 * options.seconds} s: {folder}/run.log")
    return 1000 / mean


def measure(options, folder):
    os.makedirs(folder)
    counts = BUCKETS[:2] if options.smoke else BUCKETS
    rounds = []
    for number in range(options.rounds):
        found = {}
        for count in counts:
            in_memory = run.in_memory(lambda place, count=count: rate(options, os.path.join(place, "job"), count))
            found[count] = in_memory or rate(options, os.path.join(folder, f"{number}-{count}"), count)
        rounds.append(found)
        jobs.say(f"buckets {number + 1}/{options.rounds} " + ", ".join(f"{count}: {steps_s:.0f} steps/s" for count, steps_s in found.items()))
    return {"cores": os.cpu_count(), "load": os.getloadavg()[0],
            "buckets": [{"buckets": count, "steps_per_s": figures.summary([found[count] for found in rounds]),
                         "part_of_one": figures.summary([found[count] / found[1] for found in rounds])} for count in counts]}


def text(found):
    yield f"a step of {MEMBERS} members that add {ELEMENTS} numbers, on {found['cores']} cores; load of the machine at the end: {found['load']:.1f}"
    for one in found["buckets"]:
        goal = GOALS.get(one["buckets"])
        yield "  " + figures.line(f"{one['buckets']} buckets", one["steps_per_s"], "steps/s", 1)
        if one["buckets"] > 1:
            yield "  " + figures.line("  of the rate with one" + (f" (goal: {goal})" if goal else ""), one["part_of_one"], "", 2)
