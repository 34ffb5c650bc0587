#!/usr/bin/env python3
"""How fast workers consume a topic of a real Kafka broker on this machine. Python's standard library only.

  rate      one worker that computes nothing beside bare librdkafka consumers, by turns, on the same topic: records a second, and the
            ratio to the fastest of them. Connecting and the first batch (consumer) or shard (worker) are not counted
  partitions  two workers and two servers on topics with more and more partitions. `backlog`: the topic is full, beside one bare consumer of all of
            it. `live`: records arrive at a given rate for a while; what the job has committed then, and the delay of its records
  workers   N workers on a topic of M partitions, N > M, each minibatch taking a given time, as on an accelerator: records of each
            worker, and the shares of the workers' time spent waiting, from their start to their end

Exit codes: 0 measured, 1 a job failed, 2 bad arguments, 77 Java or the broker's jars are missing (scripts/kafka install).

Examples:
  benchmarks/topics.py rate --build build/release
  benchmarks/topics.py rate --partitions 4 --runs 3
  benchmarks/topics.py workers --workers 8 --partitions 2
  benchmarks/topics.py partitions --counts 4,64,1000 --runs 3
  benchmarks/topics.py rate --build build/dev --smoke
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

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
    - {{name: records, minibatchSize: 256, minibatchesPerShard: {minibatches}, kafka: {{brokers: ["{broker}"], topic: {topic}, {bounds}}}}}
  replicaSpecs:
    ps:     {{replicas: {servers}}}
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
            file.write(JOB.format(broker=broker.address, topic=TOPIC, bounds="end: now", servers=1, workers=workers, minibatches=minibatches,
                                  command=json.dumps(command)))
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


def topic_job(broker, options, topic, bounds, folder):
    """A job of two workers and two servers; started."""
    os.mkdir(os.path.join(folder, "figures"))
    command = [os.path.join(options.build, "benchmarks", "topic_bench"), "worker", os.path.join(folder, "figures"), "0"]
    with open(os.path.join(folder, "job.yaml"), "w", encoding="utf-8") as file:
        file.write(JOB.format(broker=broker.address, topic=topic, bounds=bounds, servers=2, workers=2, minibatches=options.minibatches,
                              command=json.dumps(command)))
    with open(os.path.join(folder, "out"), "wb") as out:
        return subprocess.Popen([os.path.join(options.build, "cli", "muster"), "run", "job.yaml", "--no-progress"], cwd=folder, stdout=out, stderr=out)


def end_of(process, folder):
    try:
        code = process.wait(timeout=300)
    except subprocess.TimeoutExpired:
        process.kill()
        code = "a timeout"
    if code not in (0, 3):  # 3: it was drained
        with open(os.path.join(folder, "out"), encoding="utf-8") as file:
            sys.exit(f"the job ended with {code}:\n{file.read()[-4000:]}")
    with open(os.path.join(folder, "state", "summary.json"), encoding="utf-8") as file:
        return json.load(file)


def produce(broker, options, topic, count, records, rate, burst):
    """Every partition gets its share: `burst` records, then the next partition."""
    subprocess.run([os.path.join(options.build, "benchmarks", "topic_bench"), "fill", broker.address, topic, str(count), str(records),
                    str(options.bytes), str(rate), str(burst)], check=True, timeout=600)


def backlog(broker, options, topic, count):
    plain = subprocess.run([os.path.join(options.build, "benchmarks", "topic_bench"), "bare", "batch", broker.address, topic, str(count)],
                           stdout=subprocess.PIPE, text=True, check=True, timeout=600)
    with tempfile.TemporaryDirectory(prefix="muster-topics-") as folder:
        process = topic_job(broker, options, topic, "end: now, maxDelay: 300ms", folder)
        summary = end_of(process, folder)
        figures = []
        for name in os.listdir(os.path.join(folder, "figures")):
            with open(os.path.join(folder, "figures", name), encoding="utf-8") as file:
                figures.append(json.load(file))
    committed = summary["datasets"][0]["epochs"][0]["records_committed"]
    if committed != options.records:
        sys.exit(f"{committed} records are committed of {options.records}")
    # Neither side counts its start, nor the records of its first shard or batch.
    return per_second(json.loads(plain.stdout)), sum(each["records"] for each in figures) / max(each["seconds"] for each in figures)


def live(broker, options, topic, count):
    with tempfile.TemporaryDirectory(prefix="muster-topics-") as folder:
        process = topic_job(broker, options, topic, "start: latest, end: never, maxDelay: 300ms", folder)
        while not os.path.exists(os.path.join(folder, "state", "journal", "CURRENT")) and process.poll() is None:
            time.sleep(0.1)
        time.sleep(4)  # then the job has seen where the topic ends
        begun = time.monotonic()
        # A few records to a partition at once, because this producer sends a request for each partition.
        produce(broker, options, topic, count, options.rate * options.seconds, options.rate, options.burst)
        seconds = time.monotonic() - begun
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        return end_of(process, folder), seconds


def partitions(options):
    for count in (int(word) for word in options.counts.split(",")):
        with tempfile.TemporaryDirectory(prefix="muster-broker-") as folder, kafka_broker.Broker(folder, memory="2g") as broker:
            ratios, rates = [], []
            broker.create_topic("full", count)
            produce(broker, options, "full", count, options.records, 0, max(1, options.records // count))
            for run in range(options.runs):
                plain, ours = backlog(broker, options, "full", count)
                ratios.append(ours / plain)
                rates.append(ours)
                print(f"{count} partitions, run {run + 1}: backlog {ours:,.0f} records/s; a bare consumer {plain:,.0f}", flush=True)
            print(f"{count} partitions: backlog {spread(rates)}, of the bare consumer's rate {spread(ratios)}", flush=True)
            medians = []
            for run in range(options.runs):
                broker.create_topic(f"live{run}", count)
                summary, seconds = live(broker, options, f"live{run}", count)
                dataset = summary["datasets"][0]
                committed = dataset["epochs"][0]["records_committed"]
                delay = dataset["stream"]["delay"]
                medians.append(delay["total_p50_ms"] / 1000)
                print(f"{count} partitions, run {run + 1}: live {options.rate * options.seconds:,} records in {seconds:.1f} s, committed "
                      f"{committed:,}; delay p50 {delay['total_p50_ms']} ms, p99 {delay['total_p99_ms']} ms", flush=True)
            print(f"{count} partitions: live delay p50 {spread(medians)} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("rate", "workers", "partitions"))
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"), type=os.path.abspath)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--records", type=int, help="in the topic (default: 4000000 for rate, 800000 for workers)")
    parser.add_argument("--bytes", type=int, default=100, help="of a record (default: %(default)s)")
    parser.add_argument("--partitions", type=int, help="of the topic (default: 1 for rate, 2 for workers)")
    parser.add_argument("--minibatches", type=int, default=16, help="of 256 records in a shard (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--compute-us", type=int, default=20000, help="microseconds for a minibatch of `workers` (default: %(default)s)")
    parser.add_argument("--counts", default="4,64,256,1000", help="of partitions, of `partitions` (default: %(default)s)")
    parser.add_argument("--rate", type=int, default=8000, help="records that arrive in a second, of `partitions` (default: %(default)s)")
    parser.add_argument("--burst", type=int, default=8, help="records that arrive together in one partition, of `partitions` (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=20, help="for so long, of `partitions` (default: %(default)s)")
    parser.add_argument("--smoke", action="store_true", help="one run with few records: shows in seconds that it works, its figures mean nothing")
    options = parser.parse_args()
    if options.smoke:
        options.runs, options.records, options.workers, options.compute_us = 1, 20_000, 3, 1000
        options.counts, options.rate, options.seconds = "4", 1000, 3
    options.records = options.records or {"rate": 4_000_000, "workers": 800_000, "partitions": 300_000}[options.what]
    options.partitions = options.partitions or (1 if options.what == "rate" else 2)
    try:
        {"rate": rate, "workers": workers, "partitions": partitions}[options.what](options)
    except kafka_broker.Missing as missing:
        print(f"topics.py: {missing}", file=sys.stderr)
        sys.exit(77)


if __name__ == "__main__":
    main()
