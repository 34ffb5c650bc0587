"""The checkpoint of 500 MB of state, by two members: how long training pauses. Minibatches sleep. A member copies its half of the state
between two steps, and stores it while it trains. The pause of a checkpoint is what the longest step of that time lasted beyond the median step. Storing uses the
processor and the disk meanwhile: the other figure is what all steps from a checkpoint to the next lasted beyond the median. In the same
round: memcpy of as many bytes by one thread."""

import json
import os
import time

from group_flights import limits, run, steps
from scaling import figures
from scaling import job as jobs

WHAT = "the checkpoint of 500 MB of state: pause of training"
PROGRAMS = ("benchmarks/group_member",)
MEMBERS = 2
MINIBATCH_MS = 50
STATE_BYTES = 500_000_000
SMOKE_BYTES = 5_000_000
CHECKPOINTS = 3  # of a round
COPIES_GOAL = 2  # memcpy of the state


def newest(one):
    """The step of the newest checkpoint; 0 while there is none, or no answer."""
    try:
        return json.loads(one.job.say("status"))["group"]["checkpoint_step"]
    except (ValueError, KeyError, TypeError):
        return 0


def pauses(log, checkpoints):
    """[(longest, all together)]: what steps between two checkpoints lasted beyond the median step, in milliseconds."""
    done = steps.committed(log)
    lasted = {after.number: (after.applied - before.applied) / 1e6 for before, after in zip(done, done[1:])}
    usual = figures.summary(lasted.values())["median"]
    found = []
    for first, last in zip(checkpoints, checkpoints[1:]):
        # The copy of the state after `first` delays the steps that follow it.
        extra = [lasted[number] - usual for number in range(first + 1, last + 1) if number in lasted]
        found.append((max(extra, default=0), sum(extra)))
    return found


def observe(options, one):
    one.wait_members(MEMBERS)
    checkpoints = [one.job.wait("a checkpoint", lambda: newest(one), 60, 0.05)]
    for _ in range(1 if options.smoke else CHECKPOINTS):
        checkpoints.append(one.job.wait("another checkpoint", lambda: (step if (step := newest(one)) > checkpoints[-1] else None), 60, 0.05))
    return pauses(max(one.steps().values(), key=len), checkpoints)


def measure(options, folder):
    size = SMOKE_BYTES if options.smoke else STATE_BYTES
    longest, together, copies, times = [], [], [], []
    for number in range(options.rounds):
        with run.Run(options, os.path.join(folder, str(number)), MEMBERS, snapshots="2s",
                     trainer=["--sleep-us", 1000 * MINIBATCH_MS, "--state", size]) as one:
            found = observe(options, one)
        copy = limits.copy_ms(size)
        longest += [one[0] for one in found]
        together += [one[1] for one in found]
        copies += [one[0] / copy for one in found]
        times.append(copy)
        jobs.say(f"checkpoint {number + 1}/{options.rounds} pause {longest[-1]:.0f} ms")
    return {"bytes": size, "members": MEMBERS, "pause_ms": figures.summary(longest), "together_ms": figures.summary(together),
            "copy_ms": figures.summary(times), "copies": figures.summary(copies)}


def text(found):
    yield f"a checkpoint of {found['bytes'] / 1e6:.0f} MB of state, {found['members']} members, steps that sleep {MINIBATCH_MS} ms"
    yield "  " + figures.line("pause of a step", found["pause_ms"], "ms")
    yield "  " + figures.line("all steps until the next checkpoint, together", found["together_ms"], "ms")
    yield "  " + figures.line("memcpy of the state", found["copy_ms"], "ms")
    yield "  " + figures.line(f"pause / memcpy (goal: {COPIES_GOAL})", found["copies"], "copies", 2)
