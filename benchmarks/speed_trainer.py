#!/usr/bin/env python3
"""speed_trainer in Python, with the installed wheel: its modes pull and pull-push, of one table. benchmarks/speed.py starts it.

    speed_trainer.py MODE FOLDER KEYS DIM TABLES

What it writes to FOLDER, and when, is what speed_trainer.cc says.
"""

import json
import os
import resource
import struct
import sys
import time

import numpy as np

import muster

FILL_KEYS = 10_000  # a minibatch, while the table is filled
WARM_UP_NS = 500_000_000
LOOK_EVERY_NS = 5_000_000


class Meter:
    """Counts steps while the window is open, and writes the figures when it is closed."""

    def __init__(self, folder):
        self.window = os.path.join(folder, "window")
        self.own = os.path.join(folder, os.environ["MUSTER_NODE"])
        self.count = self.warm
        self.look_at = self.rows = 0
        self.steps = []

    def warm(self, now, _waited, _rows):
        self.ready_at = now + WARM_UP_NS
        self.count = self.warming

    def warming(self, now, _waited, _rows):
        if now >= self.ready_at:
            self.write(".ready", b"\n")
            self.count = self.waiting

    def waiting(self, now, _waited, _rows):
        if now < self.look_at or not os.path.exists(self.window):
            self.look_at = now + LOOK_EVERY_NS
            return
        with open(self.window, encoding="ascii") as file:
            self.begin, self.end = map(int, file.read().split())
        self.count = self.opening

    def opening(self, now, _waited, _rows):
        if now >= self.begin:
            self.begin, self.usage = now, cpu_seconds()
            self.count = self.measuring

    def measuring(self, now, waited, rows):
        self.rows += rows
        self.steps.append((now, waited))
        if now >= self.end:
            self.finish(now)
            self.count = lambda *_: None

    def finish(self, now):
        steps = np.array(self.steps, np.int64)
        waited = np.sort(steps[:, 1]) / 1e3
        usage = resource.getrusage(resource.RUSAGE_SELF)
        figures = {"seconds": (now - self.begin) / 1e9, "steps": len(steps), "rows": self.rows, "records": len(steps), "bytes": 0,
                   "p50_us": waited[len(waited) // 2], "p99_us": waited[len(waited) * 99 // 100], "max_us": waited[-1],
                   "cpu_seconds": cpu_seconds() - self.usage, "memory_max_bytes": usage.ru_maxrss * 1024}
        self.write(".steps", steps.tobytes())
        self.write(".json", json.dumps(figures).encode())

    def write(self, ending, content):
        with open(self.own + ending + ".new", "wb") as file:
            file.write(content)
        os.rename(self.own + ending + ".new", self.own + ending)


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def read_keys(path):
    """(rows, [calls, keys a call] uint64) of a file of benchmarks/key_file.h."""
    with open(path, "rb") as file:
        _, rows, a_call, calls = struct.unpack("<4Q", file.read(32))
        return rows, np.fromfile(file, np.uint64, calls * a_call).reshape(calls, a_call)


def main():
    mode, folder, path, dim, tables = sys.argv[1:]
    if mode not in ("pull", "pull-push") or tables != "1":
        sys.exit("speed_trainer.py: only pull and pull-push of one table")
    rows, calls = read_keys(path)
    meter = Meter(folder)
    gradients = (0.01 * np.random.default_rng(7).uniform(0.5, 1.5, (max(FILL_KEYS, calls.shape[1]), int(dim)))).astype(np.float32)
    filled = called = 0

    def parse(batch):
        nonlocal filled, called
        if filled < rows:
            keys = np.arange(filled, min(filled + FILL_KEYS, rows), dtype=np.uint64)
            filled += len(keys)
            return keys, True
        keys = calls[called % len(calls)]
        called += 1
        batch.need(table, keys)
        return keys, False

    with muster.connect() as session:
        table = session.table("embedding-0", int(dim), optimizer=muster.Adagrad(0.05, initial_accumulator=0.1))
        for batch in session.batches(parse):
            keys, fills = batch.data
            if fills:
                batch.push(table, keys, gradients[: len(keys)])
                continue
            began = time.monotonic_ns()
            pulled = batch.pull(table, keys)
            now = time.monotonic_ns()
            meter.count(now, now - began, len(pulled))
            if mode == "pull-push":
                batch.push(table, keys, gradients[: len(keys)])


if __name__ == "__main__":
    main()
