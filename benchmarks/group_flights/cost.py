"""The cost of a step: a group whose trainer computes nothing and adds 64 numbers. All members share the cores of this machine, as do the
master and its supervisors. In turns: a job whose journal is in memory, a job whose journal is on the disk, the sum alone (collectives_bench),
the sync alone (fdatasync), and the quorum of torchft's lighthouse with as many replicas, which keeps nothing on a disk and adds nothing.

A step is the time between two commits: the mean over a window. What a job without a disk needs besides the sum is the vote, the commit, and
the beginning of the next step."""

import os
import time

import groups
from group_flights import limits, run, steps
from scaling import figures
from scaling import job as jobs
from speed import peers

WHAT = "a step of 2, 8 and 32 members that compute nothing, beside the sync of the journal and a quorum of torchft"
PROGRAMS = ("benchmarks/group_member", "benchmarks/collectives_bench")
MEMBERS = (2, 8, 32)
GOALS_MS = {2: 0.5, 8: 1, 32: 3}
ELEMENTS = 64
BYTES = 8 * ELEMENTS  # fixed point
WARM_UP = 50  # steps


def job_ms(options, folder, members, seconds):
    """{"step_ms", "compute_ms", "wait_ms", "turn_ms"}: the mean time of a step of a job in `folder`, and the medians of its parts."""
    with run.Run(options, folder, members, group={"minMembers": members, "balance": False}, trainer=["--elements", ELEMENTS]) as one:
        one.wait_steps(WARM_UP)
        begin = time.monotonic_ns()
        time.sleep(seconds)
        end = time.monotonic_ns()
        logs = list(one.steps().values())
    log = logs[0]
    window = [step for step in steps.committed(log) if begin <= step.begun and step.applied <= end]
    if len(window) < 3:
        raise jobs.Failed(f"only {len(window)} steps in {seconds} s: {folder}/run.log")
    parts = [(step.computed - step.begun, step.committed - step.computed, after.begun - step.committed) for step, after in zip(window, window[1:])]
    loop, wait, turn = (figures.summary([part[i] / 1e6 for part in parts])["median"] for i in range(3))
    return {"step_ms": steps.mean_ms(log, begin, end), "compute_ms": loop, "wait_ms": wait, "turn_ms": turn}


def sum_ms(options, members, runs):
    """The sum alone, as rank 0 sees it."""
    return groups.ours(options, "shared", members, BYTES, runs)["sum_ms"]


def quorum_ms(options, members, seconds):
    """{"version", "quorum_ms"} of the peer; None where it is not installed."""
    if not peers.python(options, "torchft"):
        return None
    return peers.ask(options, "torchft", "torchft_lighthouse.py", "quorum", "--replicas", members, "--seconds", seconds)


def turn(options, folder, members, number):
    seconds = options.seconds
    one = {"memory": run.in_memory(lambda place: job_ms(options, os.path.join(place, "job"), members, seconds)),
           "disk": job_ms(options, os.path.join(folder, f"disk-{members}-{number}"), members, seconds),
           "sum_ms": sum_ms(options, members, 20 if options.smoke else 300), "sync_ms": limits.sync_ms(folder),
           "peer": quorum_ms(options, members, seconds)}
    said = f"{members} members: {one['disk']['step_ms']:.2f} ms on disk"
    if one["memory"]:
        said += f", {one['memory']['step_ms']:.2f} ms in memory"
    jobs.say(f"cost {number + 1}/{options.rounds} {said}")
    return one


def measure(options, folder):
    os.makedirs(folder)
    sizes = options.members or (MEMBERS[:1] if options.smoke else MEMBERS)
    found = {members: [turn(options, folder, members, number) for number in range(options.rounds)] for members in sizes}
    return {"cores": os.cpu_count(), "version": None, "groups": [summed(members, turns) for members, turns in found.items()]}


def summed(members, turns):
    """Summaries over the turns of a size."""
    def of(*path):
        values = []
        for one in turns:
            for name in path:
                one = one and one[name]
            values.append(one)
        return figures.summary(values)
    ratio = [one["peer"]["quorum_ms"] / one["memory"]["step_ms"] for one in turns if one["peer"] and one["memory"]]
    return {"members": members, "goal_ms": GOALS_MS.get(members), "memory_ms": of("memory", "step_ms"), "disk_ms": of("disk", "step_ms"),
            "wait_ms": of("memory", "wait_ms"), "turn_ms": of("memory", "turn_ms"), "compute_ms": of("memory", "compute_ms"), "sum_ms": of("sum_ms"),
            "sync_ms": of("sync_ms"), "peer_ms": of("peer", "quorum_ms"), "peer_ratio": figures.summary(ratio)}


def text(found):
    for one in found["groups"]:
        goal = f" (goal: {one['goal_ms']} ms)" if one["goal_ms"] else ""
        yield f"a step of {one['members']} members on {found['cores']} cores{goal}"
        for name, label in (("memory_ms", "journal in memory"), ("compute_ms", "  of it: the loop"), ("wait_ms", "  of it: sum, vote, commit"),
                            ("turn_ms", "  of it: to the next step"), ("sum_ms", "the sum alone"), ("disk_ms", "journal on disk"),
                            ("sync_ms", "fdatasync alone"), ("peer_ms", "torchft's quorum")):
            if one[name]["n"]:
                yield "  " + figures.line(label, one[name], "ms", 3)
        if one["peer_ratio"]["n"]:
            yield "  " + figures.line("torchft's quorum / our step in memory", one["peer_ratio"], "", 2)
