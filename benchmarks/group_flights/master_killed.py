"""The master is killed (SIGKILL) while a group trains, and the supervisor starts another one: the longest time between two commits
around it. Minibatches sleep. Every step must happen, once, in each member."""

import os
import signal
import time

from group_flights import run, steps
from scaling import figures
from scaling import job as jobs

WHAT = "kill -9 of the master, until the next commit by another one; no step is lost"
PROGRAMS = ("benchmarks/group_member",)
MEMBERS = 2
MINIBATCH_MS = 10
GOAL_MS = 500
KILLS = 3  # of a round
AFTER = 20  # steps that are made afterwards


def kill_master(one):
    """The longest time without a commit, in milliseconds."""
    alive = one.wait_members(MEMBERS)
    (master,) = one.job.wait("one master", lambda: pids if len(pids := one.pids("master")) == 1 else None)
    killed = time.monotonic_ns()
    os.kill(master, signal.SIGKILL)
    # A commit that was on its way may still arrive.
    one.job.wait("another master", lambda: [pid for pid in one.pids("master") if pid != master])
    one.wait_steps(max(one.made()) + AFTER)
    logs = [log for (_, pid), log in one.steps().items() if pid in alive]
    for log in logs:
        numbers = [step.number for step in steps.committed(log)]
        if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
            raise jobs.Failed(f"a member has lost a step, or applied one twice: {one.log}")
    return steps.gap_ms(logs, killed, time.monotonic_ns())


def measure(options, folder):
    gaps = []
    for number in range(options.rounds):
        with run.Run(options, os.path.join(folder, str(number)), MEMBERS, trainer=["--sleep-us", 1000 * MINIBATCH_MS]) as one:
            gaps += [kill_master(one) for _ in range(1 if options.smoke else KILLS)]
        jobs.say(f"master-killed {number + 1}/{options.rounds} {gaps[-1]:.0f} ms")
    return {"members": MEMBERS, "minibatch_ms": MINIBATCH_MS, "goal_ms": GOAL_MS, "gap_ms": figures.summary(gaps)}


def text(found):
    yield f"kill -9 of the master of {found['members']} members, steps that sleep {found['minibatch_ms']} ms; every step happened once"
    yield "  " + figures.line(f"longest time without a commit (goal: {found['goal_ms']} ms)", found["gap_ms"], "ms")
