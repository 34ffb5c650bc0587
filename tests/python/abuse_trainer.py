"""The worker of abuse_test.py, which treats the library badly. abuse_trainer.py SEED FOLDER

It adds 1 to the row of each record's number. Until FOLDER/over is there, it does so in rounds: each connects, trains for some
minibatches, and then does something that a program should not do, at a random place. worker-0 survives all of its rounds in one process,
so what they leave behind shows in its memory. Any other worker ends after some rounds, each time in another way. Each round is a line of
FOLDER/rounds. Then it is a plain worker.
"""

import contextlib
import gc
import json
import os
import random
import signal
import sys
import threading
import time
import weakref

import numpy as np

import muster

SEED, FOLDER = sys.argv[1:]
NODE = os.environ["MUSTER_NODE"]
RANDOM = random.Random(f"{SEED} {NODE} {os.environ['MUSTER_START']}")
PLACES = ("parse", "begin", "body", "push", "commit", "between")
INTERRUPT_SECONDS = 0.05
FOREVER = []


class Planted(Exception):
    """Comes from nowhere else."""


def over():
    return os.path.exists(os.path.join(FOLDER, "over"))


def memory():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def say(**what):
    """A line, which no other process can come between."""
    line = json.dumps({"node": NODE, "pid": os.getpid(), "memory": memory(), **what}) + "\n"
    file = os.open(os.path.join(FOLDER, "rounds"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(file, line.encode())
    os.close(file)


class Round:
    """A session and what came of it. Only `held` has them, so that a round can let go of each of them alone."""

    def __init__(self):
        self.held = {}
        self.watched = []
        self.place, self.skip = None, 0  # where an exception is planted: after so many times
        self.hold("session", muster.connect())
        self.hold("rows", self.held["session"].table("rows", dim=1, optimizer=muster.Sum()))
        self.hold("weights", self.held["session"].dense("weights", 3, optimizer=muster.Sum()))
        self.hold("batches", self.held["session"].batches(self.parse))

    def hold(self, name, value):
        self.held[name] = value
        with contextlib.suppress(TypeError):  # not everything can be watched
            self.watched.append((name, weakref.ref(value)))

    def at(self, place):
        if place != self.place:
            return
        self.skip -= 1
        if self.skip < 0:
            self.place = None
            raise Planted(place)

    def parse(self, batch):
        numbers = batch.record_numbers.astype(np.uint64)
        if "rows" in self.held:
            batch.need(self.held["rows"], numbers)
        batch.on_begin(lambda: self.at("begin"))
        self.at("parse")
        return numbers

    def step(self):
        """One minibatch. False: there are no more."""
        self.hold("batch", next(self.held["batches"], None))
        batch = self.held["batch"]
        if batch is None:
            return False
        with batch:
            numbers = batch.data
            self.hold("numbers", batch.record_numbers)
            self.hold("pulled", batch.pull(self.held["rows"], numbers))
            self.at("body")
            batch.on_commit(lambda: self.at("commit"))
            batch.push(self.held["rows"], numbers, np.ones((len(numbers), 2 if self.place == "push" else 1), np.float32))
        self.at("between")
        return True

    def steps(self, most=8):
        for _ in range(RANDOM.randint(1, most)):
            if not self.step():
                break

    def until_raised(self):
        """Trains until something is raised, which is soon."""
        for _ in range(10_000):
            if not self.step():
                return
        raise AssertionError("nothing was raised")

    def end(self):
        """Lets go of everything, in any order. Returns what is still there."""
        if RANDOM.random() < 0.5 and "session" in self.held:
            self.held["session"].close()
        for name in RANDOM.sample(sorted(self.held), len(self.held)):
            del self.held[name]
        gc.collect()
        return [name for name, there in self.watched if there() is not None]


def use(held):
    """Calls something of what is left: it works, or says why not."""
    calls = {
        "session": lambda it: it.check(),
        "rows": lambda it: held["batch"].pull(it, held["numbers"].astype(np.uint64)),
        "weights": lambda it: held["batch"].pull(it),
        "batches": lambda it: next(it).fail("nothing was pushed"),  # the next step would commit it
        "batch": lambda it: it.commit(),
        "numbers": np.sum,
        "pulled": np.sum,
    }
    name = RANDOM.choice(sorted(held))
    with contextlib.suppress(muster.Error, StopIteration, KeyError):
        calls[name](held[name])


def deleted(work):
    """Deletes in any order, in the middle of a shard, and uses what is left."""
    work.steps()
    for name in RANDOM.sample(sorted(work.held), len(work.held)):
        del work.held[name]
        if RANDOM.random() < 0.2:
            gc.collect()
        if work.held:
            use(work.held)


def raised(work):
    plant(work)
    with contextlib.suppress(Planted, ValueError):  # "push" gives an array of a wrong shape
        work.until_raised()


def plant(work):
    work.place, work.skip = RANDOM.choice(PLACES), RANDOM.randint(0, 6)


def interrupted(work):
    """Ctrl-C at any moment."""
    with contextlib.suppress(KeyboardInterrupt):
        interrupt_soon()
        work.until_raised()


def interrupt_soon():
    after = RANDOM.random() * INTERRUPT_SECONDS

    def send():
        time.sleep(after)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=send, daemon=True).start()


def forked(work):
    """Calls in a forked child, which must raise, and ends as Python ends, or at once."""
    work.steps()
    ends_as_python = RANDOM.random() < 0.5
    child = os.fork()
    if child == 0:
        in_child(work, ends_as_python)
    state = os.waitpid(child, 0)[1]
    assert state == 0, f"a forked child ended with {state}"
    if RANDOM.random() < 0.5:
        work.steps()  # the parent goes on


def in_child(work, ends_as_python):
    held = work.held
    calls = [held["session"].check, held["batch"].commit, lambda: next(held["batches"]), muster.connect,
             lambda: held["batch"].pull(held["weights"]), lambda: held["session"].table("other", 1)]
    RANDOM.shuffle(calls)
    code = 0
    for call in calls:
        try:
            call()
            code = 7
        except muster.FailedPrecondition:
            pass
        except BaseException:
            code = 8
    if RANDOM.random() < 0.5:
        held.clear()
    if ends_as_python:
        sys.exit(code)
    os._exit(code)


def left(work):
    """Leaves in the middle of a shard."""
    work.steps()


SURVIVED = (deleted, raised, interrupted, forked, left)


def survive():
    """One round, after which the process is as before. Returns what the library still keeps of it."""
    way = RANDOM.choice(SURVIVED)
    work = Round()
    try:
        way(work)
    finally:
        still = work.end()
    say(way=way.__name__, kept=still)


def die():
    """One round, at whose end the process ends. Whatever is left is left to the interpreter."""
    way = RANDOM.choice(("raise", "interrupt", "exit", "exit at once", "return", "cycle", "fork"))
    say(way=f"die: {way}", kept=[])
    work = Round()
    if way == "raise":
        plant(work)
        work.until_raised()
    elif way == "interrupt":
        interrupt_soon()
        work.until_raised()
    work.steps()
    if way == "exit":
        sys.exit(RANDOM.randint(0, 3))
    elif way == "exit at once":
        os._exit(0)
    elif way == "cycle":
        FOREVER.append(work)
        work.held["self"] = work
    elif way == "fork" and os.fork() == 0:
        time.sleep(RANDOM.random())  # it outlives its parent
        in_child(work, RANDOM.random() < 0.5)


def plain():
    with muster.connect() as session:
        rows = session.table("rows", dim=1, optimizer=muster.Sum())
        session.dense("weights", 3, optimizer=muster.Sum())
        for batch in session.batches():
            with batch:
                numbers = batch.record_numbers.astype(np.uint64)
                if not batch.evaluate:
                    batch.push(rows, numbers, np.ones((len(numbers), 1), np.float32))


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background commands ignore it
    rounds = sys.maxsize if NODE == "worker-0" else RANDOM.randint(0, 1)
    while not over():
        if rounds == 0:
            return die()
        survive()
        rounds -= 1
    return plain()


if __name__ == "__main__":
    main()
