#!/usr/bin/env python3
"""What a worker that joins a group costs the members while it is far too slow to copy their state: their memory and their steps.

Three members with a large state make steps that follow each other quickly. A fourth worker joins, and from its first call of NextStep it
runs for a small share of the time (SIGSTOP and SIGCONT). After --seconds it is free again. Members keep the sums that it will need, up to
256 MiB or those of four steps. They also hold a copy of their piece of the state, and a second one while the joiner still reads the one
before. A member may grow by no more than that, and a little for its connections. Before and while the joiner learns, its memory is the
largest that the kernel has seen (VmHWM). Python's standard library only.

Progress goes to stderr, figures to stdout. Exit codes: 0 measured, 1 a member grew by more or has died, 2 bad arguments, 3 the measurement
did not come to its end, 130 interrupted.

Examples:
  benchmarks/speed/slow_joiner.py
  benchmarks/speed/slow_joiner.py --build build/dev --share 0.03 --rounds 1 --output json
"""

import argparse
import json
import os
import sys
import time

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "benchmarks"))
from group_flights import added, run, steps, straggler  # noqa: E402
from scaling import figures  # noqa: E402
from scaling import job as jobs  # noqa: E402
from scaling.job import processes  # noqa: E402
from scaling.overhead import cpu_seconds  # noqa: E402

MEMBERS = 3
SUM_ELEMENT_BYTES = 8  # fixed point, the default of a bucket
KEPT_BYTES, KEPT_STEPS = 256 << 20, 4  # docs/protocol.md, section 12, rule 8
CONNECTIONS_BYTES = 4 << 20  # two rings of 1 MiB that are shared with the joiner, and what it asks for
FREE_SECONDS = 60
MIB = 1 << 20


def limit_of(options):
    """By how many bytes a member may grow: (for sums, for the rest)."""
    return max(KEPT_BYTES, KEPT_STEPS * SUM_ELEMENT_BYTES * options.elements), -(-options.state // MEMBERS) + CONNECTIONS_BYTES


class Window:
    """`with Window(one, pids)`: the steps and the largest memory of these members meanwhile."""

    def __init__(self, one, pids):
        self.one, self.pids = one, pids

    def __enter__(self):
        for pid in self.pids:
            processes.forget_most_memory(pid)
        self.begin = time.monotonic_ns()
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            return
        end = time.monotonic_ns()
        alive = set(self.one.pids())
        self.memory = {pid: processes.memory(pid)[1] for pid in self.pids if pid in alive}
        log = max((log for (_, pid), log in self.one.steps().items() if pid in self.pids), key=len)
        mean = steps.mean_ms(log, self.begin, end)
        self.steps_per_second = 1e3 / mean if mean else 0.0


def hold(one, joiner, options):
    """Until the joiner takes part, at most for --seconds: the share of a CPU that it had."""
    begin, used = time.monotonic(), cpu_seconds(joiner)
    with straggler.Throttled(joiner, options.share, options.period):
        while time.monotonic() < begin + options.seconds and taken(one, joiner) is None:
            time.sleep(0.2)
    return (cpu_seconds(joiner) - used) / (time.monotonic() - begin)


def taken(one, joiner):
    """Seconds from the joiner's first call of NextStep until it took part; None while it does not."""
    log = next((log for (_, pid), log in one.steps().items() if pid == joiner), None)
    if log is None or joiner not in one.pids():
        raise jobs.Failed(f"the joiner has ended: {one.log}")
    asked_and_part = added.joined(log)
    return asked_and_part and (asked_and_part[1] - asked_and_part[0]) / 1e9


def measure(options, folder):
    """The figures of one job."""
    trainer = ["--sleep-us", options.sleep_us, "--elements", options.elements, "--state", options.state]
    with run.Run(options, folder, MEMBERS, minibatches=2 * (MEMBERS + 1), most=MEMBERS + 1,
                 group={"minMembers": MEMBERS, "joinWait": "0s", "silenceLimit": "30s"}, trainer=trainer) as one:
        members = one.wait_members(MEMBERS)
        # They have made room for their copies.
        one.wait_steps(max(one.made()) + 20)
        with Window(one, members) as before:
            time.sleep(options.before_seconds)
        one.job.say("scale", "--workers", str(MEMBERS + 1))
        joiner = one.job.wait("the joiner's first call", lambda: next((pid for (_, pid), log in one.steps().items() if pid not in members and log),
                                                                     None), pause=0.005)
        with Window(one, members) as during:
            had = hold(one, joiner, options)
        held = taken(one, joiner)
        free = time.monotonic()
        joined = one.job.wait("the joiner's first step", lambda: taken(one, joiner), FREE_SECONDS)
        free = None if held is not None else time.monotonic() - free
        dead = MEMBERS - len(set(one.pids()) & set(members))
    growth = max((during.memory[pid] - before.memory[pid] for pid in during.memory), default=0)
    return {"steps_per_second_before": before.steps_per_second, "steps_per_second_during": during.steps_per_second,
            "memory_before": max(before.memory.values()), "memory_during": max(during.memory.values(), default=0), "growth": growth,
            "share": had, "join_seconds": joined, "join_seconds_free": free, "dead": dead}


def text(options, found, over):
    sums, rest = limit_of(options)

    def line(name, values, unit, digits=1):
        return "  " + figures.line(name, figures.summary(values), unit, digits)
    yield (f"{MEMBERS} members, {figures.mib(options.state)} of state, sums of {figures.mib(SUM_ELEMENT_BYTES * options.elements)} a step; "
           f"the joiner held to {100 * options.share:g} % of each {options.period:g} s for up to {options.seconds:g} s")
    yield line("CPU that it had", [100 * one["share"] for one in found], "%", 2)
    yield line("steps a second before", [one["steps_per_second_before"] for one in found], "/s")
    yield line("steps a second while it learns", [one["steps_per_second_during"] for one in found], "/s")
    yield line("largest memory of a member before", [one["memory_before"] / MIB for one in found], "MiB")
    yield line("largest memory of a member while it learns", [one["memory_during"] / MIB for one in found], "MiB")
    yield line(f"the most that a member grew (limit: {(sums + rest) / MIB:.1f}, of which {sums / MIB:.0f} of sums)",
               [one["growth"] / MIB for one in found], "MiB")
    yield line("it takes part after its first call by", [one["join_seconds"] for one in found], "s")
    yield line("that is after it was free again", [one["join_seconds_free"] for one in found], "s")
    for one in over:
        yield f"TOO MUCH: a member grew by {figures.mib(one['growth'])}, {one['dead']} members died"


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=os.path.abspath, default=os.path.join(ROOT, "build", "release"), help="(default: %(default)s)")
    parser.add_argument("--share", type=float, default=0.003, help="of the time in which the joiner runs (default: %(default)s)")
    parser.add_argument("--period", type=float, default=1, help="seconds from one such time to the next (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=60, help="for which it is held, at most (default: %(default)s)")
    parser.add_argument("--before-seconds", type=float, default=10, help="in which the members are watched before (default: %(default)s)")
    parser.add_argument("--elements", type=int, default=4 << 20, help="float32 numbers in the bucket (default: %(default)s)")
    parser.add_argument("--state", type=int, default=160 * MIB, help="bytes (default: %(default)s)")
    parser.add_argument("--sleep-us", type=int, default=5000, help="that a minibatch takes; a step has eight (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    parser.add_argument("--keep", action="store_true", help="keep the folder of the jobs")
    parser.add_argument("--smoke", action="store_true", help="one short round with less data: shows in seconds that it works, its figures mean nothing")
    options = parser.parse_args()
    if not 0 < options.share < 1:
        parser.error("--share is between 0 and 1")
    if not 0 < options.period <= 5:
        parser.error("--period is up to 5")  # far below the silence limit
    if options.smoke:
        options.rounds, options.seconds, options.before_seconds, options.elements, options.state = 1, 2, 1, 1 << 16, 4 * MIB
    for program in ("cli/muster", "benchmarks/group_member"):
        if not os.access(os.path.join(options.build, program), os.X_OK):
            parser.error(f"--build {options.build}: no {program} there; build it first, or name another folder")
    return options


def main():
    options = parse()

    def work(folder):
        found = []
        for number in range(options.rounds):
            found.append(measure(options, os.path.join(folder, str(number))))
            jobs.say(f"slow joiner {number + 1}/{options.rounds}: a member grew by {figures.mib(found[-1]['growth'])}")
        over = [one for one in found if one["dead"] or one["growth"] > sum(limit_of(options))]
        if options.output == "json":
            print(json.dumps({"limit": sum(limit_of(options)), "rounds": found}))
        else:
            print("\n".join(text(options, found, over)))
        return 1 if over else 0
    return jobs.in_folder("slow_joiner.py", "slow-joiner", options.keep, work)


if __name__ == "__main__":
    sys.exit(main())
