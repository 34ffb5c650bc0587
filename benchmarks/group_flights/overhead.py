"""The overhead of a group on a step of 50 ms: two members of a group, each with a minibatch of 50 ms in a step and a bucket of 64 Ki
numbers, in turns with two processes of the same trainer without a group, each alone with its minibatches. The minibatch sleeps, or it
uses the CPU: then members, master and supervisors share the cores."""

import os
import subprocess
import tempfile
import time

from group_flights import run, steps
from scaling import figures
from scaling import job as jobs
from speed import ours

WHAT = "a step of 50 ms in a group of two against the same trainer without a group"
PROGRAMS = ("benchmarks/group_member",)
MEMBERS = 2
MINIBATCH_MS = 50
ELEMENTS = 1 << 16
GOAL_PERCENT = 2
WARM_UP = 5  # steps


def arguments(kind):
    return [f"--{kind}-us", str(1000 * MINIBATCH_MS), "--elements", str(ELEMENTS)]


def group_ms(options, folder, kind):
    with run.Run(options, folder, MEMBERS, trainer=arguments(kind)) as one:
        one.wait_members(MEMBERS)
        one.wait_steps(WARM_UP)
        begin = time.monotonic_ns()
        time.sleep(2 * options.seconds)
        end = time.monotonic_ns()
        return steps.mean_ms(max(one.steps().values(), key=len), begin, end)


def alone_ms(options, folder, kind):
    """The mean of processes that run at the same time."""
    count = WARM_UP + max(5, int(2000 * options.seconds / MINIBATCH_MS))
    with tempfile.TemporaryDirectory(dir=folder) as log:
        command = [ours.program(options, run.TRAINER), log, *arguments(kind), "--alone", str(count)]
        # A session of its own, as the processes of a job: the scheduler divides the cores among sessions.
        started = [subprocess.Popen(command, start_new_session=True) for _ in range(MEMBERS)]
        if any([one.wait() for one in started]):
            raise jobs.Failed(f"{' '.join(command)} failed")
        logs = [steps.committed(log) for log in steps.read(log).values()]
    return sum(steps.mean_ms(log, log[WARM_UP].applied, log[-1].applied) for log in logs) / len(logs)


def measure(options, folder):
    os.makedirs(folder)
    turns = {kind: [] for kind in ("sleep", "busy")}
    for number in range(options.rounds):
        for kind, found in turns.items():
            found.append((group_ms(options, os.path.join(folder, f"{number}-{kind}"), kind), alone_ms(options, folder, kind)))
            jobs.say(f"overhead {number + 1}/{options.rounds} {kind}: {found[-1][0]:.2f} ms, alone {found[-1][1]:.2f} ms")
    return {kind: {"group_ms": figures.summary([pair[0] for pair in found]), "alone_ms": figures.summary([pair[1] for pair in found]),
                   "percent": figures.summary([100 * (pair[0] / pair[1] - 1) for pair in found])} for kind, found in turns.items()}


def text(found):
    for kind, what in (("sleep", "sleeps"), ("busy", "uses the CPU")):
        one = found[kind]
        yield f"a step of {MEMBERS} members whose minibatch {what} for {MINIBATCH_MS} ms, on {os.cpu_count()} cores"
        yield "  " + figures.line("in the group", one["group_ms"], "ms", 2)
        yield "  " + figures.line("without a group", one["alone_ms"], "ms", 2)
        yield "  " + figures.line(f"the group costs (goal: {GOAL_PERCENT} %)", one["percent"], "%", 2)
