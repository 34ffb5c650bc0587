#!/usr/bin/env python3
"""How fast a server writes its snapshots and is restored from them: in a folder and on S3, on this machine. Python's standard library only.

A job with one server trains a dense tensor with Adagrad. It is drained: the server writes a snapshot of every partition. Then it is run
again: the server reads them all. Both times are taken from the server's own totals in `muster status`, asked again and again: from the
last moment at which a total was still 0 until it is the number of partitions. Beside S3 stands its limit in the same run:
the same bytes by curl, to and from the same service, in objects of the same size: one after the other over one connection, and 16 at once.
The service is a stub (scripts/lib/s3_stub.py): it is faster than any real one on this machine, unless it is told to answer as late and as
slowly as one. With --moto it is moto, which is slow itself (scripts/s3 install).

Examples:
  benchmarks/storage.py --build build/release --elements 16777216
  benchmarks/storage.py --build build/release --elements 16777216 --first-byte-ms 30 --connection-mb 90
  benchmarks/storage.py --build build/dev --smoke
"""

import argparse
import itertools
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))
import processes  # noqa: E402
import s3_server  # noqa: E402
import s3_stub  # noqa: E402

SKIPPED = 77
AT_ONCE = 16  # objects of the second limit
JOB = """apiVersion: muster/v1
kind: TrainingJob
metadata: {{name: storage}}
spec:
  partitions: {partitions}
  stateDirectory: state
  snapshots: {snapshots}
  datasets:
    - {{name: lines, files: [lines.txt], epochs: 1000000, minibatchSize: 1, minibatchesPerShard: 1}}
  replicaSpecs:
    ps:     {{replicas: 1}}
    worker: {{replicas: 1, command: {command}}}
"""


class Job:
    """The job in a folder of its own."""

    def __init__(self, args, snapshots):
        self.muster = os.path.join(args.build, "cli", "muster")
        self.folder = tempfile.mkdtemp(prefix="muster-storage-")
        with open(os.path.join(self.folder, "lines.txt"), "w", encoding="ascii") as file:
            file.writelines(f"{i}\n" for i in range(1000))
        trainer = [os.path.join(args.build, "benchmarks", "speed_trainer"), "dense", self.folder, str(args.elements), "1"]
        with open(os.path.join(self.folder, "job.yaml"), "w", encoding="utf-8") as file:
            file.write(JOB.format(partitions=args.partitions, snapshots=json.dumps({"interval": "24h"} | snapshots), command=json.dumps(trainer)))
        self.run = None

    def start(self):
        """`muster run` in the background."""
        with open(os.path.join(self.folder, "run.log"), "a", encoding="utf-8") as log:
            self.run = subprocess.Popen([self.muster, "run", "job.yaml", "--no-progress"], cwd=self.folder, stdout=log, stderr=log,
                                        env=os.environ | s3_server.KEYS)

    def counters(self):
        """The totals of the server; {} while they are not known."""
        asked = subprocess.run([self.muster, "status", "job.yaml", "--output", "json"], cwd=self.folder, capture_output=True, text=True, check=False)
        if asked.returncode != 0:
            return {}
        servers = [node["server"] for node in json.loads(asked.stdout)["nodes"] if node["server"]]
        return servers[0]["counters"] if servers else {}

    def watch(self, figure, total, drained=False):
        """Seconds until the total of `figure` was `total`, from the last moment at which it was still 0. A run that is drained may end first."""
        begin, end = time.monotonic(), time.monotonic() + 300
        while time.monotonic() < end and (drained or self.run.poll() is None):
            asked = time.monotonic()
            counters = self.counters()
            seen = counters.get(figure, 0)
            if seen == 0 and (counters or not drained):
                begin = asked
            if seen >= total or (drained and self.run.poll() is not None):
                return time.monotonic() - begin
        raise RuntimeError(f"{figure} did not get to {total}; see {self.folder}/run.log")

    def close(self):
        """Ends what is left of the job."""
        if self.run is not None:
            processes.stop_group(self.run)


def measure(args, snapshots):
    """(MB/s written, MB/s restored) of one job."""
    job = Job(args, snapshots)
    try:
        job.start()
        while job.counters().get("pushes", 0) == 0:
            if job.run.poll() is not None:
                raise RuntimeError(f"the job ended; see {job.folder}/run.log")
        drain = subprocess.Popen([job.muster, "drain", "job.yaml"], cwd=job.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        megabytes = 2 * 4 * args.elements / 1e6  # values and Adagrad's sums
        written = megabytes / job.watch("snapshots", args.partitions, drained=True)
        drain.wait()
        job.run.wait()
        job.start()
        restored = megabytes / job.watch("partitions_restored", args.partitions)
        job.run.send_signal(signal.SIGINT)
        job.run.send_signal(signal.SIGINT)
        job.run.wait()
        shutil.rmtree(job.folder)
        return written, restored
    finally:
        job.close()


def limit(args, endpoint, at_once):
    """(MB/s put, MB/s got) by curl, so many objects at once."""
    with tempfile.TemporaryDirectory(prefix="muster-storage-") as folder:
        body = os.path.join(folder, "body")
        with open(body, "wb") as file:
            file.write(os.urandom(2 * 4 * args.elements // args.partitions))
        urls = [f"{endpoint}/limit/{i}" for i in range(args.partitions)]
        signed = [word for header in s3_server.SOMEBODY.items() for word in ("-H", ": ".join(header))]
        parallel = ["--parallel", "--parallel-immediate", "--parallel-max", str(at_once)] if at_once > 1 else []
        rates = []
        for words in ([word for url in urls for word in ("-T", body, url)], [word for url in urls for word in ("-o", os.devnull, url)]):
            begin = time.monotonic()
            subprocess.run(["curl", "--silent", "--show-error", "--fail", *parallel, *signed, *words], check=True, capture_output=True)
            rates.append(2 * 4 * args.elements / 1e6 / (time.monotonic() - begin))
        return rates


def store_alone(args, bucket, endpoint):
    """(MB/s written, MB/s fetched) by store_bench: Muster's store without a server's work, four objects fetched at once."""
    place = f"s3://{bucket}/alone?endpoint={urllib.parse.quote(endpoint, safe='')}&path-style=true"
    asked = subprocess.run([os.path.join(args.build, "benchmarks", "store_bench"), place, str(args.partitions), str(8 * args.elements // args.partitions)],
                           env=os.environ | s3_server.KEYS, check=True, stdout=subprocess.PIPE, text=True)
    return tuple(float(rate) for rate in asked.stdout.split())


def spread(values, unit=""):
    """The median, and the smallest and the largest."""
    form = "{:.2f}" if max(values) < 10 else "{:.0f}"
    return f"{form.format(statistics.median(values))}{unit} ({form.format(min(values))} to {form.format(max(values))})"


def rounds(args, service):
    """{name: [(written, restored) of each round]}."""
    one_by_one, together = "curl, one by one", f"curl, {AT_ONCE} at once"
    rows = ({} if args.store_only else {"folder": [], "S3": []}) | {"S3, store alone": [], one_by_one: [], together: []}
    if args.moto:
        service.make_bucket("limit")
    for run in range(args.runs):
        bucket = f"run-{run}"
        if args.moto:
            service.make_bucket(bucket)
        rows[one_by_one].append(limit(args, service.endpoint, 1))
        if not args.store_only:
            rows["folder"].append(measure(args, {}))
            rows["S3"].append(measure(args, {"directory": f"s3://{bucket}/job", "s3": {"endpoint": service.endpoint, "pathStyle": True}}))
        rows["S3, store alone"].append(store_alone(args, bucket, service.endpoint))
        rows[together].append(limit(args, service.endpoint, AT_ONCE))
    return rows


def show(args, rows):
    """Prints rates, and S3's share of each limit by rounds."""
    print(f"{8 * args.elements / 1e6:.0f} MB in {args.partitions} objects; medians of {args.runs}, smallest and largest")
    print(f"{'':36} {'written':>26} {'restored':>26}")
    for name, pairs in rows.items():
        print(f"{name:36} " + " ".join(f"{spread(column, ' MB/s'):>26}" for column in zip(*pairs)))
    for ours, theirs in itertools.product([name for name in rows if name.startswith("S3")], [name for name in rows if name.startswith("curl")]):
        shares = [[a / b for a, b in zip(*pair)] for pair in zip(zip(*rows[ours]), zip(*rows[theirs]))]
        print(f"{ours + ' / ' + theirs:36} " + " ".join(f"{spread(column):>26}" for column in shares))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=os.path.abspath, help="a build folder")
    parser.add_argument("--elements", type=int, default=64 << 20, help="of the tensor (default: %(default)s)")
    parser.add_argument("--partitions", type=int, default=64, help="of the job, so that many objects (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="jobs for each place (default: %(default)s)")
    parser.add_argument("--first-byte-ms", type=float, default=0, help="of the stub, until an answer begins (default: %(default)s)")
    parser.add_argument("--connection-mb", type=float, default=0, help="of the stub, MB/s on each connection; 0: no limit (default: %(default)s)")
    parser.add_argument("--moto", action="store_true", help="moto instead of the stub")
    parser.add_argument("--store-only", action="store_true", help="no jobs: the store alone, beside curl")
    parser.add_argument("--smoke", action="store_true", help="one small job each")
    args = parser.parse_args()
    if args.smoke:
        args.elements, args.runs = 1 << 20, 1
    try:
        service = s3_server.Server() if args.moto else s3_stub.Stub(args.first_byte_ms, args.connection_mb)
    except s3_server.Missing as missing:
        print(f"skipped: {missing}")
        return SKIPPED
    with service:
        show(args, rounds(args, service))
    return 0


if __name__ == "__main__":
    sys.exit(main())
