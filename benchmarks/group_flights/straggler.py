"""A member of two gets a fifth of its time: it is stopped and continued by signals. The rate of the steps with shares by measured pace
(`spec.group.balance`, the default), in turns with equal shares. Minibatches use the CPU; each member has a core, where there are two."""

import os
import signal
import threading
import time

from group_flights import run, steps
from scaling import figures
from scaling import job as jobs
from scaling.job import processes

WHAT = "a member throttled to a fifth: step rate with shares by measured pace against equal shares"
PROGRAMS = ("benchmarks/group_member",)
MEMBERS = 2
MINIBATCHES = 24
MINIBATCH_MS = 8
SHARE = 0.2
PERIOD_SECONDS = 0.02
GOAL = 1.8
WINDOW = 4  # times --seconds
WARM_UP = 8  # steps: the pace is known


class Throttled:
    """`with Throttled(pid)`: it runs for this share of the time."""

    def __init__(self, pid, share=SHARE, period=PERIOD_SECONDS):
        self.pid, self.share, self.period, self.over = pid, share, period, threading.Event()
        self.thread = threading.Thread(target=self.work, daemon=True)

    def work(self):
        while not self.over.is_set():
            processes.send(self.pid, signal.SIGSTOP)
            time.sleep((1 - self.share) * self.period)
            processes.send(self.pid, signal.SIGCONT)
            time.sleep(self.share * self.period)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def step_ms(options, folder, balance):
    # A member that is stopped must stay one.
    with run.Run(options, folder, MEMBERS, minibatches=MINIBATCHES, group={"balance": balance, "silenceLimit": "1h"},
                 trainer=["--busy-us", 1000 * MINIBATCH_MS]) as one:
        with Throttled(one.wait_members(MEMBERS)[-1]):
            one.wait_steps(max(one.made()) + (2 if options.smoke else WARM_UP))
            begin = time.monotonic_ns()
            time.sleep(WINDOW * options.seconds)
            log = max(one.steps().values(), key=len)
            found = steps.mean_ms(log, begin, time.monotonic_ns())
    if found is None:
        raise jobs.Failed(f"fewer than two steps in {WINDOW * options.seconds} s: {folder}")
    return found


def measure(options, folder):
    turns = []
    for number in range(options.rounds):
        turns.append({str(balance): step_ms(options, os.path.join(folder, f"{number}-{balance}"), balance) for balance in (True, False)})
        jobs.say(f"straggler {number + 1}/{options.rounds} {turns[-1]['True']:.0f} ms against {turns[-1]['False']:.0f} ms")
    return {"balanced_ms": figures.summary([one["True"] for one in turns]), "equal_ms": figures.summary([one["False"] for one in turns]),
            "ratio": figures.summary([one["False"] / one["True"] for one in turns])}


def text(found):
    yield f"{MEMBERS} members, one of them throttled to {100 * SHARE:.0f} %, {MINIBATCHES} minibatches of {MINIBATCH_MS} ms in a step"
    yield "  " + figures.line("a step with shares by pace", found["balanced_ms"], "ms")
    yield "  " + figures.line("a step with equal shares", found["equal_ms"], "ms")
    yield "  " + figures.line(f"step rate with / without (goal: {GOAL})", found["ratio"], "", 2)
