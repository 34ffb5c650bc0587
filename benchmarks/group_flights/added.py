"""A member is added to two that have 500 MB of state (`muster scale`): the longest time between two commits of the others meanwhile, and
the time in which the new one copies the state and takes part, from its first call of NextStep to the first step of which it computes a
minibatch. In the same round: memcpy of as many bytes by one thread. Minibatches sleep. A newcomer waits for the end of the step in work
twice: for the copies that the members make between two steps, and to become a member."""

import os
import time

from group_flights import limits, run, steps
from scaling import figures
from scaling import job as jobs

WHAT = "a member is added to two with 500 MB of state: pause of the others, time until it takes part"
PROGRAMS = ("benchmarks/group_member",)
MEMBERS = 2
STEP_MS = 50
STATE_BYTES = 500_000_000
SMOKE_BYTES = 5_000_000
COPIES_GOAL = 4  # memcpy of the state
WARM_UP = 2  # seconds


def joined(log):
    """(asked, takes part) of a newcomer's log, in nanoseconds; None while it does not."""
    part = next((step.begun for step in steps.committed(log) if step.minibatches > 0), None)
    return (log[0].begun, part) if log and part else None


def add(one):
    """{"pause_ms", "join_ms"}."""
    before = one.wait_members(MEMBERS)
    one.wait_steps(10)
    # The members have made room for their copies.
    time.sleep(WARM_UP)
    usual = figures.summary(steps.periods_ms(max(one.steps().values(), key=len)))["median"]
    began = time.monotonic_ns()
    one.job.say("scale", "--workers", str(MEMBERS + 1))

    def newcomer():
        logs = [log for (_, pid), log in one.steps().items() if pid not in before]
        return logs and joined(logs[0])
    asked, part = one.job.wait("the new member's first step", newcomer, 60)
    time.sleep(4 * STEP_MS / 1e3)  # the steps after it belong to the pause, too
    logs = [log for (_, pid), log in one.steps().items() if pid in before]
    longest = max(steps.gap_ms([log], began, time.monotonic_ns()) for log in logs)
    return {"pause_ms": max(0, longest - usual), "join_ms": (part - asked) / 1e6, "step_ms": usual}


def measure(options, folder):
    size = SMOKE_BYTES if options.smoke else STATE_BYTES
    turns = []
    for number in range(options.rounds):
        with run.Run(options, os.path.join(folder, str(number)), MEMBERS, minibatches=2 * (MEMBERS + 1), most=MEMBERS + 1,
                     group={"minMembers": MEMBERS, "joinWait": "0s"},
                     trainer=["--sleep-us", 500 * STEP_MS // (MEMBERS + 1), "--state", size]) as one:
            turns.append(add(one))
        turns[-1]["copy_ms"] = limits.copy_ms(size)
        jobs.say(f"added {number + 1}/{options.rounds} pause {turns[-1]['pause_ms']:.0f} ms, takes part after {turns[-1]['join_ms']:.0f} ms")
    found = {name: figures.summary([one[name] for one in turns]) for name in ("pause_ms", "join_ms", "step_ms", "copy_ms")}
    return found | {"bytes": size, "members": MEMBERS, "copies": figures.summary([one["join_ms"] / one["copy_ms"] for one in turns])}


def text(found):
    yield f"a member is added to {found['members']} with {found['bytes'] / 1e6:.0f} MB of state"
    yield "  " + figures.line("a step of the others before", found["step_ms"], "ms")
    yield "  " + figures.line("their longest pause beyond a step (goal: less than a step)", found["pause_ms"], "ms")
    yield "  " + figures.line("the new one takes part after", found["join_ms"], "ms")
    yield "  " + figures.line("memcpy of the state", found["copy_ms"], "ms")
    yield "  " + figures.line(f"takes part / memcpy (goal: {COPIES_GOAL})", found["copies"], "copies")
