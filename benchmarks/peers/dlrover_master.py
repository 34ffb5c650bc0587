#!/usr/bin/env python3
"""Shards of DLRover's master, leased and reported as done by its own Python client on this machine. One line of JSON on stdout.

A dataset of one record a shard, epochs without end; a client asks for a task (`get_task`), reports it as done (`report_task_result`),
and asks for the next. Clients are threads of up to four processes. The master keeps all of it in memory. Both log errors only,
which is faster than its default.

Example: ~/.cache/muster-peers/dlrover/bin/python benchmarks/peers/dlrover_master.py --clients 1 --seconds 3
"""

import argparse
import importlib.metadata
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

WARM_UP_SECONDS = 0.5
START_SECONDS = 60
PROCESSES_MAX = 4
DATASET, SHARDS = "bench", 50_000
TICKS = os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for(port, process):
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    sys.exit("dlrover_master.py: the master does not listen")


def client_of(port, node):
    os.environ.update(DLROVER_MASTER_ADDR=f"127.0.0.1:{port}", NODE_ID=str(node), NODE_TYPE="worker")
    from dlrover.python.elastic_agent.master_client import build_master_client
    return build_master_client()


def loop(client, stop, taken):
    """(when it ended, seconds that get_task took) of every shard."""
    while not stop.is_set():
        asked = time.perf_counter()
        ok, task = client.get_task(DATASET)
        got = time.perf_counter()
        if not ok or task.task_id < 0:
            sys.exit("dlrover_master.py: the master has no task")
        client.report_task_result(DATASET, task.task_id, "")
        taken.append((time.perf_counter(), got - asked))


def run_clients(port, first, count, ready, go, stop, answers):
    clients = [client_of(port, first + number) for number in range(count)]
    taken = [[] for _ in clients]
    threads = [threading.Thread(target=loop, args=(client, stop, one)) for client, one in zip(clients, taken)]
    ready.release()
    go.wait()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answers.put(([one for each in taken for one in each], time.process_time()))


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def measure(port, master, options):
    client_of(port, 0).report_dataset_shard_params(batch_size=1, num_epochs=-1, dataset_size=SHARDS, shuffle=False, num_minibatches_per_shard=1,
                                                   dataset_name=DATASET, task_type=1, storage_type="table")
    context = multiprocessing.get_context("spawn")
    ready, go, stop, answers = context.Semaphore(0), context.Event(), context.Event(), context.Queue()
    count = min(PROCESSES_MAX, options.clients)
    shares = [options.clients // count + (number < options.clients % count) for number in range(count)]
    processes = [context.Process(target=run_clients, args=(port, 1000 * number, share, ready, go, stop, answers), daemon=True)
                 for number, share in enumerate(shares, 1)]
    for process in processes:
        process.start()
    for _ in processes:
        ready.acquire()
    go.set()
    time.sleep(min(WARM_UP_SECONDS, options.seconds))
    begin, used = time.perf_counter(), cpu_seconds(master.pid)
    time.sleep(options.seconds)
    end, used = time.perf_counter(), cpu_seconds(master.pid) - used
    stop.set()
    said = [answers.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(30)
    gets = sorted(1e6 * seconds for taken, _ in said for when, seconds in taken if begin <= when <= end)
    if not gets:
        sys.exit("dlrover_master.py: no shard was done in that time")
    return {"shards_per_second": len(gets) / (end - begin), "p50_us": gets[len(gets) // 2], "p99_us": gets[len(gets) * 99 // 100],
            "master_cpu_us": 1e6 * used / len(gets)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    os.environ["DLROVER_LOG_LEVEL"] = "ERROR"
    port = free_port()
    with tempfile.TemporaryFile() as log:
        command = [sys.executable, "-m", "dlrover.python.master.main", "--platform", "local", "--job_name", "bench", "--port", str(port),
                   "--node_num", str(max(64, options.clients)), "--xpu_type", "cpu", "--service_type", "grpc"]
        with subprocess.Popen(command, stdout=log, stderr=log) as master:
            try:
                wait_for(port, master)
                figures = measure(port, master, options)
            finally:
                master.kill()
    print(json.dumps({"version": f"dlrover {importlib.metadata.version('dlrover')}", "depths": {options.clients: figures}}))


if __name__ == "__main__":
    main()
