#!/usr/bin/env python3
"""torch.distributed.rpc as a parameter server: one server and one worker, two processes on this machine. One line of JSON on stdout.

The server holds float32 tensors [rows, dim], one for each table; a pull is `index_select` on them, a push `index_add_` of all rows of
the call, repeats as they come: no optimizer, no keys that do not exist, no recovery, and nothing that keeps two pushes of the same row
apart. The worker asks by `rpc_async` for the calls of a file of keys (speed_limits keys), some of them in progress at a time. A call
carries the keys of all tables: key k is row k / tables of table k % tables.

  pull       rows a second that come back
  pull-push  rows a second that come back and whose gradients have been added: the pull of a later call is in progress while a push is
  small      the time of one pull after the other, with `rpc_sync`

Example: ~/.cache/muster-peers/torch/bin/python benchmarks/peers/torch_rpc.py pull --keys KEYS --dim 64 --depths 1,4,8 --seconds 3
"""

import argparse
import collections
import json
import os
import resource
import struct
import sys
import time

import spawned

WARM_UP_SECONDS = 0.5
KEY_FILE_WORDS, KEY_FILE_MAGIC = 4, 0x315359454B42534D  # benchmarks/key_file.h
TABLES = []  # the server's


def pull(keys):
    return [table.index_select(0, rows) for table, rows in zip(TABLES, keys)]


def push(keys, gradients):
    for table, rows, of_table in zip(TABLES, keys, gradients):
        table.index_add_(0, rows, of_table)


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def read_keys(path):
    """(rows, [calls, keys a call])."""
    import numpy
    with open(path, "rb") as file:
        magic, rows, a_call, calls = struct.unpack(f"<{KEY_FILE_WORDS}Q", file.read(8 * KEY_FILE_WORDS))
        if magic != KEY_FILE_MAGIC:
            sys.exit(f"torch_rpc.py: {path} is not a file of keys")
        return rows, numpy.fromfile(file, dtype="<i8", count=calls * a_call).reshape(calls, a_call)


def join_rpc(name, rank, options, port):
    import torch
    from torch.distributed import rpc
    torch.set_num_threads(options.threads)
    # Left alone, TensorPipe takes shared memory, and lets the kernel copy from one process to the other.
    forced = {"_transports": ["uv"], "_channels": ["basic"]} if options.transport == "uv" else {}
    backend = rpc.TensorPipeRpcBackendOptions(num_worker_threads=8, init_method=f"tcp://127.0.0.1:{port}", rpc_timeout=60, **forced)
    rpc.init_rpc(name, rank=rank, world_size=2, rpc_backend_options=backend)
    return torch, rpc


def serve(options, port, _):
    import torch
    rows, _ = read_keys(options.keys)
    import torch_rpc  # what the worker names
    torch_rpc.TABLES = [torch.rand(-(-rows // options.tables), options.dim) for _ in range(options.tables)]
    _, rpc = join_rpc("server", 0, options, port)
    rpc.shutdown()


class Worker:
    """Asks the server, and counts."""

    def __init__(self, options, port):
        self.options = options
        self.torch, self.rpc = join_rpc("worker", 1, options, port)
        _, keys = read_keys(options.keys)
        self.rows_of_call = keys.shape[1]
        self.calls = [[self.torch.from_numpy(call[call % options.tables == table] // options.tables) for table in range(options.tables)]
                      for call in keys]
        self.gradients = {count: self.torch.full((count, options.dim), 0.01) for count in {len(rows) for call in self.calls for rows in call}}
        import torch_rpc
        self.functions = torch_rpc

    def pull_async(self, number):
        return self.rpc.rpc_async("server", self.functions.pull, (self.calls[number % len(self.calls)],))

    def steps(self, depth, seconds):
        """How many steps end in about so many seconds, and in how many exactly; `depth` pulls and as many pushes are in progress."""
        pulls, pushes = collections.deque(), collections.deque()
        asked = done = 0
        begin = time.perf_counter()
        while True:
            ending = time.perf_counter() - begin >= seconds
            while not ending and len(pulls) < depth:
                pulls.append((asked, self.pull_async(asked)))
                asked += 1
            if not pulls:
                break
            number, future = pulls.popleft()
            future.wait()
            if self.options.mode == "pull-push":
                keys = self.calls[number % len(self.calls)]
                gradients = [self.gradients[len(rows)] for rows in keys]
                pushes.append(self.rpc.rpc_async("server", self.functions.push, (keys, gradients)))
                if len(pushes) >= depth:
                    pushes.popleft().wait()
            done += 1
        for future in pushes:
            future.wait()
        return done, time.perf_counter() - begin

    def rate(self, depth):
        self.steps(depth, min(WARM_UP_SECONDS, self.options.seconds))
        own, server = cpu_seconds(), self.rpc.rpc_sync("server", self.functions.cpu_seconds)
        done, seconds = self.steps(depth, self.options.seconds)
        own, server = cpu_seconds() - own, self.rpc.rpc_sync("server", self.functions.cpu_seconds) - server
        rows = done * self.rows_of_call
        return {"rows_per_second": rows / seconds, "worker_cpu_ns": 1e9 * own / rows, "server_cpu_ns": 1e9 * server / rows}

    def latency(self):
        self.steps(1, min(WARM_UP_SECONDS, self.options.seconds))
        taken, begin, number = [], time.perf_counter(), 0
        while time.perf_counter() - begin < self.options.seconds:
            asked = time.perf_counter()
            self.rpc.rpc_sync("server", self.functions.pull, (self.calls[number % len(self.calls)],))
            taken.append(1e6 * (time.perf_counter() - asked))
            number += 1
        taken.sort()
        return {"p50_us": taken[len(taken) // 2], "p99_us": taken[len(taken) * 99 // 100]}


def work(options, port, answers):
    worker = Worker(options, port)
    depths = {depth: worker.latency() if options.mode == "small" else worker.rate(depth) for depth in options.depths}
    answers.put({"version": f"torch {worker.torch.__version__}", "depths": depths})
    worker.rpc.shutdown()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=("pull", "pull-push", "small"))
    parser.add_argument("--keys", required=True, help="file of keys")
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--tables", type=int, default=1, help="that the rows are divided among (default: %(default)s)")
    parser.add_argument("--transport", choices=("default", "uv"), default="default", help="uv: TCP alone, no shared memory")
    parser.add_argument("--depths", type=lambda text: [int(one) for one in text.split(",")], default=[1, 4, 8], help="calls in progress")
    parser.add_argument("--threads", type=int, default=1, help="torch's own, of each process (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=3, help="for each depth")
    options = parser.parse_args()
    port = spawned.free_port()
    print(json.dumps(spawned.answer([(serve, (options, port)), (work, (options, port))])))


if __name__ == "__main__":
    # Both processes find the functions of this file by its name as a module.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, here)
    os.environ["PYTHONPATH"] = here + os.pathsep + os.environ.get("PYTHONPATH", "")
    import torch_rpc
    torch_rpc.main()
