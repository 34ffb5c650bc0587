#!/usr/bin/env python3
"""How fast workers consume a topic of a real Kafka broker on this machine. Python's standard library only.

  rate      one worker that computes nothing beside bare librdkafka consumers, by turns, on the same topic: records a second, and the
            ratio to the fastest of them. Connecting and the first batch (consumer) or shard (worker) are not counted
  workers   N workers on a topic of M partitions, N > M, each minibatch taking a given time, as on an accelerator: records of each
            worker, and the shares of the workers' time spent waiting, from their start to their end

Exit codes: 0 measured, 1 a job failed, 2 bad arguments, 77 Java or the broker's jars are missing (scripts/kafka install).

Examples:
  benchmarks/topics.py rate --build build/release
  benchmarks/topics.py rate --partitions 4 --runs 3
  benchmarks/topics.py workers --workers 8 --partitions 2
  benchmarks/topics.py rate --build build/dev --smoke
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))
import kafka_broker  # noqa: E402

TOPIC = "bench"
# How a bare consumer takes records, and its settings besides librdkafka's own: the last are a worker's.
BARE = {"one by one": ("poll", []), "in batches": ("batch", []),
        "in batches, a worker's settings": ("batch", ["queued.max.messages.kbytes=8192", "fetch.wait.max.ms=100"])}
JOB = """apiVersion: muster/v1
kind: TrainingJob
metadata: {{name: topics}}
spec:
  partitions: 16
  stateDirectory: state
  datasets:
    - {{name: records, minibatchSize: 256, minibatchesPerShard: {minibatches}, kafka: {{brokers: ["{broker}"], topic: {topic}, end: now}}}}
  replicaSpecs:
    ps:     {{replicas: 1}}
    worker: {{replicas: {workers}, command: {command}}}
"""


def fill(broker, options):
    broker.create_topic(TOPIC, options.partitions)
    print(f"producing {options.records:,} records of {options.bytes} bytes to {options.partitions} partition(s) ...", file=sys.stderr, flush=True)
    broker.tool("org.apache.kafka.tools.ProducerPerformance", "--topic", TOPIC, "--num-records", str(options.records), "--record-size",
                str(options.bytes), "--throughput", "-1", "--producer-props", f"bootstrap.servers={broker.address}")


def bare(broker, options, how):
    mode, settings = BARE[how]
    done = subprocess.run([os.path.join(options.build, "benchmarks", "topic_bench"), "bare", mode, broker.address, TOPIC,
                           str(options.partitions), *settings], stdout=subprocess.PIPE, text=True, check=True, timeout=600)
    return json.loads(done.stdout)


def job(broker, options, workers, minibatches, compute_us):
    """The figures of each worker, and the job's summary."""
    with tempfile.TemporaryDirectory(prefix="muster-topics-") as folder:
        figures = os.path.join(folder, "figures")
        os.mkdir(figures)
        command = [os.path.join(options.build, "benchmarks", "topic_bench"), "worker", figures, str(compute_us)]
        with open(os.path.join(folder, "job.yaml"), "w", encoding="utf-8") as file:
            file.write(JOB.format(broker=broker.address, topic=TOPIC, workers=workers, minibatches=minibatches, command=json.dumps(command)))
        ended = subprocess.run([os.path.join(options.build, "cli", "muster"), "run", "job.yaml", "--no-progress"], cwd=folder,
                               capture_output=True, text=True, timeout=1200, check=False)
        if ended.returncode != 0:
            sys.exit(f"the job ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
        said = {}
        for name in sorted(os.listdir(figures)):
            with open(os.path.join(figures, name), encoding="utf-8") as file:
                said[name] = json.load(file)
        with open(os.path.join(folder, "state", "summary.json"), encoding="utf-8") as file:
            summary = json.load(file)
        committed = summary["datasets"][0]["epochs"][0]["records_committed"]
        if committed != options.records:
            sys.exit(f"{committed} records are committed of {options.records}")
        return said, summary


def per_second(figures):
    return figures["records"] / figures["seconds"]


def spread(values):
    return f"median {statistics.median(values):,.2f} ({min(values):,.2f} to {max(values):,.2f})"


def rate(options):
    with tempfile.TemporaryDirectory(prefix="muster-broker-") as folder, kafka_broker.Broker(folder) as broker:
        fill(broker, options)
        bare(broker, options, "in batches")  # the page cache is warm from here on
        ours, theirs = [], {how: [] for how in BARE}
        for run in range(options.runs):
            for how, rates in theirs.items():
                rates.append(per_second(bare(broker, options, how)))
            said, _ = job(broker, options, 1, options.minibatches, 0)
            ours.append(per_second(said["worker-0"]))
            print(f"run {run + 1}: worker {ours[-1]:,.0f} records/s; bare consumers " + ", ".join(f"{rates[-1]:,.0f}" for rates in theirs.values()),
                  flush=True)
    for how, rates in theirs.items():
        print(f"bare, {how + ':':34} {spread(rates)}")
    print(f"one worker:{'':29} {spread(ours)}")
    best = max(theirs.values(), key=statistics.median)
    print(f"worker / fastest bare consumer:{'':9} {spread([a / b for a, b in zip(ours, best)])}")


def workers(options):
    with tempfile.TemporaryDirectory(prefix="muster-broker-") as folder, kafka_broker.Broker(folder) as broker:
        fill(broker, options)
        for run in range(options.runs):
            said, summary = job(broker, options, options.workers, options.minibatches, options.compute_us)
            records = [figures["records"] for figures in said.values()]
            share = [f"for {what} {100 * part:.1f} %" for what, part in summary["waiting"].items()]
            print(f"run {run + 1}: {options.workers} workers on {options.partitions} partitions: records of each {sorted(records)}, "
                  f"{summary['records_per_second']:,.0f} records/s; waited " + ", ".join(share), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("rate", "workers"))
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"), type=os.path.abspath)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--records", type=int, help="in the topic (default: 4000000 for rate, 800000 for workers)")
    parser.add_argument("--bytes", type=int, default=100, help="of a record (default: %(default)s)")
    parser.add_argument("--partitions", type=int, help="of the topic (default: 1 for rate, 2 for workers)")
    parser.add_argument("--minibatches", type=int, default=16, help="of 256 records in a shard (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--compute-us", type=int, default=20000, help="microseconds for a minibatch of `workers` (default: %(default)s)")
    parser.add_argument("--smoke", action="store_true", help="one run with few records: shows in seconds that it works, its figures mean nothing")
    options = parser.parse_args()
    if options.smoke:
        options.runs, options.records, options.workers, options.compute_us = 1, 20_000, 3, 1000
    options.records = options.records or (4_000_000 if options.what == "rate" else 800_000)
    options.partitions = options.partitions or (1 if options.what == "rate" else 2)
    try:
        {"rate": rate, "workers": workers}[options.what](options)
    except kafka_broker.Missing as missing:
        print(f"topics.py: {missing}", file=sys.stderr)
        sys.exit(77)


if __name__ == "__main__":
    main()
