"""A member of three is killed (SIGKILL) in mid-step: the time until the next commit. The two that are left keep what they have computed, and
one of them computes the minibatch of the dead one, so a step and a part of it are in the time. Minibatches sleep. The supervisor starts
another process, which joins before the next kill. In turns with torchft: a replica of three is killed, until a survivor has a quorum
without it."""

import os
import signal
import time

from group_flights import run, steps
from scaling import figures
from scaling import job as jobs
from speed import peers

WHAT = "kill -9 of a member in mid-step, until the next commit, beside torchft's reaction to a death"
PROGRAMS = ("benchmarks/group_member",)
MEMBERS = 3
MINIBATCH_MS = 30
GOAL_MS = 100  # beyond the step
KILLS = 3  # of a round


def kill_one(one):
    """{"reaction_ms", "beyond_ms"}: from the kill to the next commit, and without the computation that had to be done in between."""
    alive = one.wait_members(MEMBERS)
    victim = alive[-1]
    one.wait_commit(time.monotonic_ns(), alive)
    time.sleep(MINIBATCH_MS / 2e3)
    killed = time.monotonic_ns()
    os.kill(victim, signal.SIGKILL)
    commit = one.wait_commit(killed, alive[:-1])
    reaction = (commit - killed) / 1e6
    # The rest of the own minibatch, and that of the dead member.
    return {"reaction_ms": reaction, "beyond_ms": reaction - 1.5 * MINIBATCH_MS}


def reaction_of_peer(options):
    if options.smoke or not peers.python(options, "torchft"):
        return None
    return peers.ask(options, "torchft", "torchft_lighthouse.py", "kill", "--replicas", MEMBERS)


def measure(options, folder):
    kills, theirs = [], []
    for number in range(options.rounds):
        place = os.path.join(folder, str(number))
        with run.Run(options, place, MEMBERS, trainer=["--sleep-us", 1000 * MINIBATCH_MS]) as one:
            kills += [kill_one(one) for _ in range(1 if options.smoke else KILLS)]
            if not steps.numbers_once(one.steps().values()):
                raise jobs.Failed(f"a step is missing: {place}")
        theirs.append(reaction_of_peer(options))
        jobs.say(f"member-killed {number + 1}/{options.rounds} {kills[-1]['reaction_ms']:.0f} ms")
    return {"members": MEMBERS, "minibatch_ms": MINIBATCH_MS, "goal_ms": GOAL_MS,
            "reaction_ms": figures.summary([one["reaction_ms"] for one in kills]), "beyond_ms": figures.summary([one["beyond_ms"] for one in kills]),
            "peer_ms": figures.summary([one and one["first_ms"] for one in theirs])}


def text(found):
    yield f"kill -9 of a member of {found['members']} in mid-step, minibatches that sleep {found['minibatch_ms']} ms"
    yield "  " + figures.line("until the next commit", found["reaction_ms"], "ms")
    yield "  " + figures.line(f"of it beyond the computation (goal: {found['goal_ms']} ms)", found["beyond_ms"], "ms")
    if found["peer_ms"]["n"]:
        yield "  " + figures.line("torchft, until a quorum without it", found["peer_ms"], "ms", 0)
