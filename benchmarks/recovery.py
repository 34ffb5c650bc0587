#!/usr/bin/env python3
"""How long a death is felt: kills a worker, a server and the master of a running job, again and again. Python's standard library only.

  worker  from SIGKILL to the first minibatch of one of its shards that is acknowledged for another process
          (upper bound: seen when the next minibatch is committed)
  server  from SIGKILL to the end of a pull, begun afterwards, of keys in every partition
  master  from SIGKILL to the first done that the new master has accepted
          (upper bound: seen by `muster status`, asked again and again)

A node that dies again and again would be started after a pause; here it never is, for the pause is a setting, not a cost.

With --shards N it measures the master instead: a dataset of N shards, its resident memory on the way, and the time from SIGKILL
until it answers `muster status` again.

Examples:
  benchmarks/recovery.py --build build/release
  benchmarks/recovery.py --build build/release --shards 1000000
  benchmarks/recovery.py --build build/dev --smoke
"""

import argparse
import glob
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))
import processes  # noqa: E402

JOB = """apiVersion: muster/v1
kind: TrainingJob
metadata: {{name: recovery}}
spec:
  partitions: 256
  stateDirectory: state
  snapshots: {{interval: {snapshots}}}
  datasets:
    - {{name: lines, files: [lines.txt], epochs: 1, minibatchSize: 1, minibatchesPerShard: {minibatches}}}
  training: {{unacknowledgedMinibatchesMax: 1, shardsAhead: {ahead}}}
  restarts: {{crashLoopExits: 1000, backoffInitial: 0s, backoffMax: 0s}}
  replicaSpecs:
    ps:     {{replicas: 2}}
    worker: {{replicas: 2, command: {command}}}
"""


class Job:
    """A running job in a folder of its own, drained or killed at the end."""

    def __init__(self, args, records, minibatches, ahead, command, snapshots="1s"):
        self.muster = os.path.join(args.build, "cli", "muster")
        self.folder = tempfile.mkdtemp(prefix="muster-recovery-")
        with open(os.path.join(self.folder, "lines.txt"), "w") as file:
            file.writelines(f"{i}\n" for i in range(records))
        self.logs = os.path.join(self.folder, "probe")
        os.mkdir(self.logs)
        probe = os.path.join(args.build, "benchmarks", "recovery_probe")
        with open(os.path.join(self.folder, "job.yaml"), "w") as file:
            file.write(JOB.format(minibatches=minibatches, ahead=ahead, snapshots=snapshots,
                                  command=json.dumps([probe] + [c.format(logs=self.logs) for c in command])))
        self.output = open(os.path.join(self.folder, "run.log"), "w")
        self.process = subprocess.Popen([self.muster, "run", "job.yaml", "--no-progress"], cwd=self.folder,
                                        stdout=self.output, stderr=subprocess.STDOUT)

    def status(self):
        """The status, or None while the master does not answer."""
        asked = subprocess.run([self.muster, "status", "--output", "json"], cwd=self.folder,
                               capture_output=True, text=True, timeout=60)
        try:
            return json.loads(asked.stdout) if asked.returncode == 0 else None
        except ValueError:
            return None

    def pids(self, role):
        return processes.nodes(self.process.pid, "recovery_probe")[role]

    def wait(self, condition, seconds, what):
        """The first true value of `condition`."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                sys.exit(f"the job ended while waiting for {what}: {self.folder}/run.log")
            value = condition()
            if value:
                return value
            time.sleep(0.002)
        sys.exit(f"no {what} after {seconds} s: {self.folder}/run.log")

    def events(self, without_pid=None):
        """(time, event, shard, began) of every worker but one."""
        result = []
        for path in glob.glob(os.path.join(self.logs, "*.log")):
            if without_pid is not None and path.endswith(f"-{without_pid}.log"):
                continue
            with open(path) as file:
                for line in file:
                    fields = line.split()
                    if len(fields) == 4 and line.endswith("\n"):
                        result.append((int(fields[0]), fields[1], fields[2], int(fields[3])))
        return result

    def end(self):
        self.process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=60)
        self.output.close()


def kill(pid):
    began = time.monotonic_ns()
    os.kill(pid, signal.SIGKILL)
    return began


def settled(job):
    """Both workers have just had a minibatch acknowledged, and everything runs."""
    since = time.monotonic_ns()
    job.wait(lambda: len(job.pids("worker")) == 2 and len(job.pids("ps")) == 2 and len(job.pids("master")) == 1,
             60, "processes")
    job.wait(lambda: sum(any(f"-{pid}.log" in path and os.path.getmtime(path) > 0 and
                             any(e[1] == "ok" and e[0] > since for e in read(path))
                             for path in glob.glob(os.path.join(job.logs, "*.log")))
                         for pid in job.pids("worker")) == 2, 60, "acknowledged minibatch of both workers")


def read(path):
    with open(path) as file:
        return [(int(f[0]), f[1]) for f in (line.split() for line in file if line.endswith("\n")) if len(f) == 4]


def worker_recovery(job):
    pid = job.pids("worker")[0]
    path = glob.glob(os.path.join(job.logs, f"*-{pid}.log"))[0]
    began = kill(pid)
    shards = [line.split()[2] for line in open(path) if " shard " in line]
    shard = shards[-1]
    found = job.wait(lambda: [e[0] for e in job.events(pid) if e[1] == "ok" and e[2] == shard and e[0] > began],
                     60, f"acknowledged minibatch of shard {shard}")
    return (min(found) - began) / 1e6


def server_recovery(job):
    began = kill(job.pids("ps")[0])
    found = job.wait(lambda: [e[0] for e in job.events() if e[1] == "pull" and e[3] > began], 60, "pull")
    return (min(found) - began) / 1e6


def master_recovery(job):
    pid = job.pids("master")[0]
    began = kill(pid)
    first = job.wait(job.status, 60, "answer of the master")
    job.wait(lambda: (job.status() or first)["done_seq"] > first["done_seq"], 60, "accepted done")
    return (time.monotonic_ns() - began) / 1e6


def recovery(args):
    job = Job(args, records=4_000_000, minibatches=8, ahead=2, command=["{logs}", "5"])
    try:
        for name, measure in (("worker", worker_recovery), ("server", server_recovery), ("master", master_recovery)):
            times = []
            for _ in range(args.kills):
                settled(job)
                times.append(measure(job))
            print(f"{name}: median {statistics.median(times):.0f} ms, from {min(times):.0f} to {max(times):.0f} ms "
                  f"({len(times)} kills)", flush=True)
    finally:
        job.end()


def memory_mib(pid):
    values = {}
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith(("VmRSS:", "RssAnon:", "RssFile:")):
                values[line.split(":")[0]] = int(line.split()[1]) / 1024
    return ", ".join(f"{name} {value:.0f} MiB" for name, value in values.items())


def many_shards(args):
    job = Job(args, records=args.shards, minibatches=1, ahead=1000, command=[])
    try:
        job.wait(job.status, 120, "answer of the master")
        print(f"{args.shards} shards, begun: {memory_mib(job.pids('master')[0])}", flush=True)
        for share in (0.1, 0.5, 0.9):
            def reached():
                status = job.status()
                return status if status is not None and status["done_seq"] >= share * args.shards else None
            status = job.wait(reached, 600, f"{share:.0%} of the shards")
            pid = job.pids("master")[0]
            memory = memory_mib(pid)
            began = kill(pid)
            job.wait(job.status, 120, "answer of the master")
            print(f"{status['done_seq']} done, {status['commit_seq']} of them committed: {memory}; from SIGKILL to serving "
                  f"{(time.monotonic_ns() - began) / 1e6:.0f} ms", flush=True)
    finally:
        job.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"), help="build folder with the programs")
    parser.add_argument("--kills", type=int, default=10, help="of each role")
    parser.add_argument("--shards", type=int, default=0, help="measure the master with this many shards")
    parser.add_argument("--smoke", action="store_true", help="one kill of each role, and a master of few shards: shows in seconds that it works")
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    if args.smoke:
        args.kills, args.shards = 1, 20_000
    if args.smoke or args.shards == 0:
        recovery(args)
    if args.shards > 0:
        many_shards(args)


if __name__ == "__main__":
    main()
