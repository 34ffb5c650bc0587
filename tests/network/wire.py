#!/usr/bin/env python3
"""A wire between two Ethernet interfaces (TAP) that loses, delays and reorders frames.

It stands in for `tc netem`, which not every kernel has. Each end is PID:NAME: an interface that is made in the network
namespace of that process. Prints "ready" when both are there, and carries frames until it is killed.
"""

import argparse
import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import time

TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
CLONE_NEWNET = 0x40000000
FRAME_MAX = 65536
# Frames on the way in each direction; more are dropped, as by any queue.
QUEUE_MAX = 20000


def enter(descriptor):
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def tap_in(pid, name):
    """A TAP interface in the namespace of the process. Its descriptor works from everywhere."""
    own = os.open("/proc/self/ns/net", os.O_RDONLY)
    other = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    enter(other)
    try:
        tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
        subprocess.run(["ip", "link", "set", name, "up"], check=True)
    finally:
        enter(own)
        os.close(own)
        os.close(other)
    return tap


def carry(ends, options, rng):
    waiting = []  # (due, order, to, frame)
    order = 0
    while True:
        timeout = None if not waiting else max(0, waiting[0][0] - time.monotonic())
        readable, _, _ = select.select(list(ends), [], [], timeout)
        now = time.monotonic()
        for end in readable:
            for _ in range(64):
                try:
                    frame = os.read(end, FRAME_MAX)
                except BlockingIOError:
                    break
                if rng.random() < options.loss or len(waiting) > QUEUE_MAX:
                    continue
                # A frame that skips the delay overtakes others.
                skips = rng.random() < options.reorder
                delay = 0 if skips else options.delay_ms + rng.uniform(-options.jitter_ms, options.jitter_ms)
                heapq.heappush(waiting, (now + delay / 1000, order, ends[end], frame))
                order += 1
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, to, frame = heapq.heappop(waiting)
            try:
                os.write(to, frame)
            except BlockingIOError:
                pass


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="Example: wire.py --ends 100:eth0 200:p1 --delay-ms 50 --jitter-ms 20")
    parser.add_argument("--ends", nargs=2, required=True, help="PID:NAME, twice")
    parser.add_argument("--loss", type=float, default=0, help="share of the frames, 0 to 1")
    parser.add_argument("--delay-ms", type=float, default=0)
    parser.add_argument("--jitter-ms", type=float, default=0, help="the delay is up to this much longer or shorter; frames overtake each other")
    parser.add_argument("--reorder", type=float, default=0, help="share of the frames that are not delayed")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    one, other = (tap_in(int(end.split(":")[0]), end.split(":")[1]) for end in options.ends)
    print("ready", flush=True)
    carry({one: other, other: one}, options, random.Random(options.seed))


if __name__ == "__main__":
    main()
