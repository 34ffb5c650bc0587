#!/usr/bin/env python3
"""What slow deletions of snapshots on S3 cost a job: the rate of training while each request that deletes takes so long, in turns.

The counter job of tests/integration with its snapshots on moto (scripts/s3 install), behind a proxy that answers deletions late. Its
minibatches sleep, so that the rate shows who waits, not how busy the machine is. Python's standard library only.

Examples:
  benchmarks/speed/deletions.py --build build/release
  benchmarks/speed/deletions.py --build build/dev --delays 0,2000 --rounds 1 --seconds 5
"""

import argparse
import os
import random
import statistics
import sys
import time

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))
import counter_job  # noqa: E402  (it adds scripts/lib)
import s3_proxy  # noqa: E402
import s3_server  # noqa: E402

BUCKET = "snapshots"


def faults(delay_ms):
    """A single object, and a list of them."""
    slow = {"kind": "slow", "seconds": delay_ms / 1000, "times": 1 << 30}
    return [slow | {"method": "DELETE"}, slow | {"method": "POST", "match": "delete"}] if delay_ms else []


def records_done(job):
    """As soon as the master answers."""
    while (seen := job.progress()) is None:
        time.sleep(0.1)
    return seen[0]


def rate(job, seconds):
    """Records a second."""
    begin, before = time.monotonic(), records_done(job)
    while time.monotonic() < begin + seconds:
        time.sleep(0.1)
    return (records_done(job) - before) / (time.monotonic() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True, type=os.path.abspath)
    parser.add_argument("--delays", default="0,50,2000", help="milliseconds")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=20, help="of each measurement")
    args = parser.parse_args()
    args.muster, args.trainer = (os.path.join(args.build, "cli", name) for name in ("muster", "verify_worker"))
    delays = [int(text) for text in args.delays.split(",")]
    rates = {delay: [] for delay in delays}
    with s3_server.Server() as server, s3_proxy.Proxy(server.port, s3_server.KEYS["AWS_SECRET_ACCESS_KEY"]) as proxy:
        server.make_bucket(BUCKET)
        with counter_job.CounterJob(args, records=2_000_000, epochs=1) as job:
            job.environment = dict(s3_server.KEYS)
            job.silence = "60s"
            job.snapshots |= {"directory": f"s3://{BUCKET}/job", "s3": {"endpoint": proxy.endpoint, "region": "eu-test-1", "pathStyle": True}}
            job.write_data(random.Random(1))
            job.write_job()
            run = job.start("--no-progress")
            job.wait_progress(run, 0.002)
            for _ in range(args.rounds):
                for delay in delays:
                    proxy.faults = faults(delay)
                    rates[delay].append(rate(job, args.seconds))
                    print(f"{delay:>6} ms: {rates[delay][-1]:>8.0f} records/s, {len(server.keys(BUCKET))} objects", flush=True)
            starts = {node["name"]: node["start"] for node in job.status()["nodes"] if node["name"] == "master"}
            job.kill(run)
    base = statistics.median(rates[delays[0]])
    for delay in delays:
        middle = statistics.median(rates[delay])
        print(f"{delay} ms a deletion: median {middle:.0f} records/s, {100 * (middle / base - 1):+.1f} %")
    print(f"starts of the master: {starts}")


if __name__ == "__main__":
    main()
