#!/usr/bin/env python3
"""Quorums of torchft's lighthouse, and its reaction to a death. Only torchft's compiled module is loaded, so torch is not needed.

Each replica is a process of its own, with a manager server and its client as in training (heartbeats every 100 ms, torchft's default), and
asks for the next quorum as soon as it has one. The lighthouse is a process of its own with the settings of its command: heartbeats time out
after 5 s. It keeps everything in memory.

  quorum  one line of JSON on stdout: {"version", "quorum_ms": median time of a call, "rate": quorums of all replicas a second}
  kill    a replica is killed by SIGKILL: {"version", "first_ms", "last_ms": until a survivor, and all of them, have a quorum without it}.
          The replicas pause 20 ms between two quorums, as if they computed

Examples:
  ~/.cache/muster-peers/torchft/bin/python benchmarks/peers/torchft_lighthouse.py quorum --replicas 8
  ~/.cache/muster-peers/torchft/bin/python benchmarks/peers/torchft_lighthouse.py kill --replicas 3
"""

import argparse
import datetime
import importlib.metadata
import importlib.util
import json
import multiprocessing
import os
import queue
import signal
import socket
import statistics
import subprocess
import sys
import time

PAUSE_SECONDS = 0.02
REACTION_MAX_SECONDS = 30
START_MAX_SECONDS = 60


def module():
    """The compiled part alone: the package itself imports torch."""
    folder = os.path.join(str(importlib.metadata.distribution("torchft").locate_file("")), "torchft")
    names = [name for name in os.listdir(folder) if name.startswith("_torchft.") and name.endswith(".so")]
    if not names:
        sys.exit(f"torchft_lighthouse.py: no compiled module in {folder}")
    spec = importlib.util.spec_from_file_location("_torchft", os.path.join(folder, names[0]))
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def lighthouse(port):
    """Its command, whose arguments are those of its process: this script gives way to it."""
    command = [sys.executable, __file__, "--bind", f"127.0.0.1:{port}", "--min_replicas", "1"]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def replica(name, port, pause, answers):
    """Puts (name, begin, end, replicas of the quorum) for each call, until the process is ended."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    torchft, second = module(), datetime.timedelta(seconds=1)
    server = torchft.ManagerServer(replica_id=name, lighthouse_addr=f"http://127.0.0.1:{port}", hostname="127.0.0.1", bind="127.0.0.1:0",
                                   store_addr="127.0.0.1:1", world_size=1, heartbeat_interval=0.1 * second, connect_timeout=10 * second,
                                   quorum_retries=0)
    client = torchft.ManagerClient(server.address(), connect_timeout=10 * second)
    step = 0
    while True:
        time.sleep(pause)
        begin = time.monotonic()
        quorum = client._quorum(group_rank=0, step=step, checkpoint_metadata="", shrink_only=False, timeout=60 * second, commit_failures=0,
                                init_sync=True)
        answers.put((name, begin, time.monotonic(), quorum.replica_world_size))
        step += 1


class Replicas:
    """`with Replicas(...)`: a lighthouse and its replicas, all of them in a quorum."""

    def __init__(self, count, pause):
        context = multiprocessing.get_context("spawn")
        port = free_port()
        self.count, self.answers = count, context.Queue()
        self.replicas = {f"replica-{i:03}": context.Process(target=replica, args=(f"replica-{i:03}", port, pause, self.answers), daemon=True)
                         for i in range(count)}
        self.port, self.lighthouse = port, None

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        self.lighthouse = lighthouse(self.port)
        end = time.monotonic() + START_MAX_SECONDS
        while not self.listens():
            if time.monotonic() > end or self.lighthouse.poll() is not None:
                sys.exit("torchft_lighthouse.py: the lighthouse does not listen")
            time.sleep(0.02)
        for one in self.replicas.values():
            one.start()
        complete = set()
        while len(complete) < self.count:
            name, _, _, size = self.answer(end)
            if size == self.count:
                complete.add(name)

    def __exit__(self, *_):
        for one in self.replicas.values():
            if one.pid is not None:
                one.kill()
                one.join()
        self.lighthouse.kill()
        self.lighthouse.wait()

    def listens(self):
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.port)) == 0

    def answer(self, end):
        """The next call's, before `end`."""
        try:
            return self.answers.get(timeout=max(0.001, end - time.monotonic()))
        except queue.Empty:
            sys.exit("torchft_lighthouse.py: no quorum of the replicas in time")


def quorum(options):
    with Replicas(options.replicas, 0) as group:
        begin, calls = time.monotonic(), []
        end = begin + options.seconds
        while time.monotonic() < end:
            _, asked, answered, size = group.answer(end + REACTION_MAX_SECONDS)
            if size == options.replicas and asked >= begin:
                calls.append(1e3 * (answered - asked))
        if not calls:
            sys.exit("torchft_lighthouse.py: no quorum of all replicas: more --seconds")
        return {"quorum_ms": statistics.median(calls), "rate": len(calls) / options.replicas / options.seconds}


def kill(options):
    with Replicas(options.replicas, PAUSE_SECONDS) as group:
        time.sleep(1)  # heartbeats have come
        victim = max(group.replicas)
        killed = time.monotonic()
        os.kill(group.replicas[victim].pid, signal.SIGKILL)
        seen = {}
        while len(seen) < options.replicas - 1:
            name, _, answered, size = group.answer(killed + REACTION_MAX_SECONDS)
            if answered > killed and name != victim and size == options.replicas - 1:
                seen.setdefault(name, 1e3 * (answered - killed))
        return {"first_ms": min(seen.values()), "last_ms": max(seen.values())}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("quorum", "kill"))
    parser.add_argument("--replicas", type=int, required=True, help="processes")
    parser.add_argument("--seconds", type=float, default=2, help="in which quorums are counted (default: %(default)s)")
    options = parser.parse_args()
    if not 2 <= options.replicas <= 64 or not 0.1 <= options.seconds <= 600:
        parser.error("--replicas is from 2 to 64, and --seconds from 0.1 to 600")
    found = {"quorum": quorum, "kill": kill}[options.what](options)
    print(json.dumps({"version": f"torchft {importlib.metadata.version('torchft')} (lighthouse)"} | found))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--bind"]:
        module().lighthouse_main()
    else:
        main()
