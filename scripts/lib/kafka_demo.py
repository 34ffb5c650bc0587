#!/usr/bin/env python3
"""Trains on the flights while they are produced to a topic, beside one pass over the file. Called by scripts/demo --kafka."""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kafka_broker  # noqa: E402

TOPIC, GROUP = "flights", "muster.flights-from-kafka"
PARTITIONS = 4
# One pass over the file and one over the topic: the AUC of each varies by 0.001 from run to run (standard deviation), their difference by
# 0.0015. In nine runs beside other programs the topic was at most 0.004 below the mean of the file (docs/quality.md).
AUC_APART_MAX = 0.006
TICK = 0.05  # seconds


class Producer(threading.Thread):
    """Writes records to the topic at a steady rate, in turn to its partitions, by one kcat for each, as soon as `job_learns()`."""

    def __init__(self, broker, records, rate, job_learns):
        super().__init__()
        self.records, self.rate, self.produced, self.seconds, self.job_learns = records, rate, 0, 0.0, job_learns
        # The batch is sent at once: what waits in the producer would count as the job's delay.
        self.cats = [subprocess.Popen(["kcat", "-q", "-P", "-b", broker.address, "-t", TOPIC, "-p", str(p), "-X", "linger.ms=5"],
                                      stdin=subprocess.PIPE) for p in range(PARTITIONS)]
        self.stopped = threading.Event()

    def run(self):
        while not self.job_learns() and not self.stopped.wait(TICK):
            pass
        begin = time.monotonic()
        while self.produced < len(self.records) and not self.stopped.is_set():
            due = min(len(self.records), int((time.monotonic() - begin + TICK) * self.rate))
            for p, cat in enumerate(self.cats):
                first = self.produced + (p - self.produced) % PARTITIONS
                cat.stdin.write(b"".join(self.records[first:due:PARTITIONS]))
                cat.stdin.flush()
            self.produced = due
            self.stopped.wait(TICK)
        for cat in self.cats:
            cat.stdin.close()
        for cat in self.cats:
            if cat.wait() != 0:
                self.produced = 0  # it is not known what arrived
        self.seconds = time.monotonic() - begin


def workers_ask(muster):
    """Whether all servers and workers of the job are there."""
    asked = subprocess.run([muster, "status", "job-kafka.yaml", "--output", "json"], capture_output=True, text=True, check=False)
    if asked.returncode != 0:
        return False
    nodes = [node for node in json.loads(asked.stdout)["nodes"] if node["role"] in ("ps", "worker")]
    return bool(nodes) and all(node["state"] == "running" for node in nodes)


def run_job(muster, job, state):
    """The summary of a job that succeeded, else None."""
    # Ctrl-C goes to the whole foreground group: `muster run` drains, and this script waits for it.
    code = subprocess.call([muster, "run", job])
    if code != 0:
        print(f"demo: muster run ended with exit code {code}; logs are in {os.path.abspath(state)}/logs", file=sys.stderr)
        return None
    with open(os.path.join(state, "summary.json"), encoding="utf-8") as file:
        return json.load(file)


def write_jobs(broker, records):
    with open("job.yaml", encoding="utf-8") as file:
        text = file.read()
    with open("one-pass.yaml", "w", encoding="utf-8") as file:
        file.write(re.sub(r"\bstate\b", "state-one-pass", re.sub(r"epochs: \d+", "epochs: 1", text)))
    end = {p: (records - p + PARTITIONS - 1) // PARTITIONS for p in range(PARTITIONS)}
    with open("job-kafka.template", encoding="utf-8") as file:
        text = file.read()
    with open("job-kafka.yaml", "w", encoding="utf-8") as file:
        file.write(text.replace("BROKER", f'"{broker.address}"').replace("END", json.dumps(end).replace('"', "")))


def dataset(summary, name):
    return next(one for one in summary["datasets"] if one["name"] == name)


def report(file_job, topic_job, producer, told):
    """Prints the figures; returns True if they are correct. `told`: (committed, end, lag) of each partition, by Kafka's tool."""
    in_topic = sum(end for _, end, _ in told)
    train, stream = dataset(topic_job, "train")["epochs"][0], dataset(topic_job, "train")["stream"]
    auc = {name: dataset(job, "test")["epochs"][0]["metrics"] for name, job in (("file", file_job), ("topic", topic_job))}
    apart = auc["topic"]["auc"] - auc["file"]["auc"]
    delay = stream["delay"] or {"total_p50_ms": float("nan"), "total_p99_ms": float("nan")}
    print(f"\n{'':34}{'from the topic':>16}{'from the file':>16}")
    for name, label in (("auc", "test AUC after one pass"), ("logloss", "test log loss after one pass")):
        print(f"  {label:32}{auc['topic'][name]:16.4f}{auc['file'][name]:16.4f}")
    for name, label in (("training_seconds", "seconds in training"), ("records_per_second", "records a second")):
        print(f"  {label:32}{topic_job[name]:16,.1f}{file_job[name]:16,.1f}")
    print(f"\n  records in the topic / committed  {in_topic:,} / {train['records_committed']:,}, produced in {producer.seconds:.1f} s "
          f"({producer.produced / producer.seconds:,.0f} a second, to {PARTITIONS} partitions)")
    print(f"  lag at the end                    {stream['lag']} offsets; Kafka's consumer-group tool says {sum(lag for _, _, lag in told)}")
    print(f"  delay, timestamp to weights       p50 {delay['total_p50_ms'] / 1e3:.3f} s, p99 {delay['total_p99_ms'] / 1e3:.3f} s")
    waiting = topic_job["waiting"]
    print("  workers' time spent waiting       " + ", ".join(f"for {what} {100 * share:.1f} %" for what, share in waiting.items()))
    good = (in_topic == train["records_committed"] == len(producer.records) and stream["lag"] == 0 and all(lag == 0 for _, _, lag in told)
            and abs(apart) <= AUC_APART_MAX)
    print(f"\nThe target, every produced record committed exactly once and AUC within {AUC_APART_MAX} of the file's: "
          + ("reached." if good else "MISSED."))
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, epilog="Example: scripts/demo --kafka --rate 20000")
    parser.add_argument("--muster", required=True)
    parser.add_argument("--rate", type=int, default=8000, help="records a second that are produced (default: %(default)s)")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with open("train.csv", "rb") as file:
        records = file.read().splitlines(keepends=True)[1:]
    try:
        broker = kafka_broker.Broker("broker")
    except kafka_broker.Missing as missing:
        print(f"demo: {missing}", file=sys.stderr)
        return 1
    with broker:
        write_jobs(broker, len(records))
        print("One pass over the file, to compare with ...", flush=True)
        file_job = run_job(options.muster, "one-pass.yaml", "state-one-pass")
        if file_job is None:
            return 1
        broker.create_topic(TOPIC, PARTITIONS)
        print(f"\nThe same from a topic, to which {options.rate:,} records a second are produced ...", flush=True)
        # Records that were written before the job would have waited for its start.
        producer = Producer(broker, records, options.rate, lambda: workers_ask(options.muster))
        producer.start()
        try:
            topic_job = run_job(options.muster, "job-kafka.yaml", "state-kafka")
        finally:
            producer.stopped.set()
            producer.join()
        if topic_job is None:
            return 1
        told = broker.group_lags(GROUP).values()
    return 0 if report(file_job, topic_job, producer, told) else 1


if __name__ == "__main__":
    sys.exit(main())
