"""Jobs that learn from topics of a real Kafka broker, for kafka_test.py and its siblings: the counter job over topics, and what writes them.

Not a test. What kcat reads of the topics is what the weights must be.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest

import counter_job
from counter_job import processes

import kafka_broker  # of scripts/lib, as processes

JOB = """apiVersion: muster/v1
kind: TrainingJob
metadata: {{name: from-topic}}
spec:
  seed: {seed}
  partitions: 32
  stateDirectory: state
  snapshots: {{interval: 500ms}}
  training: {{rejectedRecordsMax: {rejected_max}}}
  datasets: {datasets}
  leases: {{duration: {silence}, gracePeriod: 1s, heartbeatInterval: 100ms, failuresMax: {failures_max}}}
  servers: {{timeout: {silence}, heartbeatInterval: 100ms}}
  restarts: {{crashLoopExits: 100, backoffInitial: 100ms, backoffMax: 500ms}}
  replicaSpecs:
    ps:     {{replicas: 2}}
    worker: {worker}
"""
TOPIC = "numbers"
GROUP = "muster.from-topic"
DRAINED = 3  # exit code of a run
options = None


def main(description, test):
    """Of a test's file: reads the options and runs its tests."""
    global options
    parser = argparse.ArgumentParser(
        description=description.splitlines()[0],
        epilog=f"Example: {test} --muster build/dev/cli/muster --trainer build/dev/cli/verify_worker "
               "--topic-tool build/dev/tests/integration/topic_tool",
    )
    counter_job.add_arguments(parser)
    parser.add_argument("--topic-tool", type=os.path.abspath, help="the topic_tool executable, for tests with transactions")
    options, rest = parser.parse_known_args()
    unittest.main(module="__main__", argv=sys.argv[:1] + rest, verbosity=2)


class TopicJob(counter_job.CounterJob):
    """The counter job over topics, one dataset for each: its result must equal the records that kcat reads."""

    def __init__(self, broker, *, topics=(TOPIC,), **more):
        super().__init__(options, records=0, epochs=1, **more)
        self.broker = broker
        # The text of the job file for each; the datasets have the topics' names.
        self.topics = {topic: {"brokers": [broker.address], "topic": topic, "maxDelay": "300ms"} for topic in topics}
        self.worker = {"replicas": 2}
        self.rejected_max = 0

    def write_job(self):
        datasets = [{"name": topic, "minibatchSize": 32, "minibatchesPerShard": 4, "kafka": kafka} for topic, kafka in self.topics.items()]
        with open(self.path("job.yaml"), "w", encoding="utf-8") as file:
            file.write(JOB.format(seed=self.seed, datasets=json.dumps(datasets), silence=self.silence, failures_max=self.failures_max,
                                  rejected_max=self.rejected_max,
                                  worker=json.dumps({"command": self.command, "env": self.worker_environment} | self.worker)))

    def streams(self):
        """{topic: its part of `muster status`}; None while the master does not answer."""
        if (status := self.status()) is None:
            return None
        return {dataset["name"]: dataset["stream"] | {"done": dataset["epochs"][0]["records_done"],
                                                      "committed_records": dataset["epochs"][0]["records_committed"]}
                for dataset in status["datasets"]}

    def stream(self, topic=TOPIC):
        seen = self.streams()
        return seen and seen[topic]

    def wait_streams(self, run, condition, what, seconds=60):
        return self.wait_until(run, self.streams, lambda seen: seen is not None and condition(seen), what, seconds)

    def wait_stream(self, run, condition, what, seconds=60):
        return self.wait_streams(run, lambda seen: condition(seen[TOPIC]), what, seconds)[TOPIC]

    def wait_read(self, run, read, seconds=60):
        """Waits until all records that kcat has read, {topic: [records]}, are COMMITTED, and no others are known."""
        ends = {topic: {} for topic in read}
        for topic, records in read.items():
            for partition, offset, _, _ in records:
                ends[topic][partition] = max(ends[topic].get(partition, 0), offset + 1)

        def complete(stream, ends):
            committed = {partition["partition"]: partition["committed"] for partition in stream["partitions"]}
            return stream["lag"] == 0 and not stream["trouble"] and all(committed.get(p, 0) >= end for p, end in ends.items())

        self.wait_streams(run, lambda seen: all(complete(seen[topic], ends[topic]) for topic in read), "all is COMMITTED", seconds)

    def wait_until(self, run, look, condition, what, seconds=60):
        """What `look` has found when the condition holds of it; the job must run until then."""
        end = time.monotonic() + seconds
        while True:
            if run.poll() is not None:
                raise AssertionError(f"the run ended with {run.poll()} before {what}\n{self.last_words()}")
            if condition(seen := look()):
                return seen
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds} s: {what}; seen: {seen}\n{self.last_words()}")
            time.sleep(0.02)

    @staticmethod
    def wait_without_run(condition, what, seconds=60):
        """Waits for what needs no run."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"no result of the wait for: {what}")
            time.sleep(0.05)

    def events(self, kind=None):
        """The texts of the events of a kind, or the kinds of all, oldest first."""
        said = map(json.loads, self.said_by("events", "job.yaml", "--output", "json").splitlines())
        return [event["text"] if kind else event["kind"] for event in said if kind in (None, event["kind"])]

    def said_by(self, *arguments):
        """The output of a verb; none while it fails."""
        return subprocess.run([self.muster, *arguments], cwd=self.folder, text=True, capture_output=True, check=False, timeout=60).stdout

    def wait_events(self, run, kind, count=1, seconds=60):
        """The texts of that many events of a kind, or more."""
        return self.wait_until(run, lambda: self.events(kind), lambda seen: len(seen) >= count, f"{count} events {kind}", seconds)

    def drain(self, run):
        self.ask("drain", "job.yaml")
        self.wait(run, DRAINED)

    def processes_of(self, run, role):
        return [pid for pid in processes.nodes(run.pid, os.path.basename(self.trainer))[role] if not processes.paused(pid)]

    def strike(self, run, role, rng):
        """SIGKILL to one process of that role; restarts take a moment."""
        while True:
            pids = self.wait_until(run, lambda: self.processes_of(run, role), bool, f"a {role} runs")
            if processes.send(rng.choice(pids), signal.SIGKILL):
                return

    @contextlib.contextmanager
    def paused(self, run, role):
        """Everything of that role stands still meanwhile."""
        pids = self.processes_of(run, role)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                processes.send(pid, signal.SIGCONT)

    def require_closed_form_of(self, records):
        """The exported weights are those of these records of kafka_broker.consume(), each once."""
        self.paths = [self._write("read.txt", [value for _, _, _, value in records])]
        self.require_closed_form()

    def require_what_kcat_reads(self):
        records = [record for topic in self.topics for record in kafka_broker.consume(self.broker, topic)]
        self.require_closed_form_of(records)
        return len(records)


class Transactions:
    """topic_tool, writing to a topic in the background; `settings` are its options. `with` ends it."""

    def __init__(self, broker, topic, **settings):
        words = [word for name, value in settings.items() for word in ("--" + name.replace("_", "-"), str(value))]
        self.process = subprocess.Popen([options.topic_tool, "--brokers", broker.address, "--topic", topic, "--id", topic, *words],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def finish(self, at_once=True):
        """Its figures, after the transaction that it is in, or all that it was to make."""
        if at_once:
            self.process.stdin.close()
        said = self.process.stdout.read()
        if self.process.wait(timeout=180) != 0:
            raise AssertionError(f"topic_tool ended with {self.process.returncode}")
        return json.loads(said)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class TopicTest(unittest.TestCase):
    """Skipped, with the reason, where Java, kcat or Kafka's jars are missing."""

    @classmethod
    def setUpClass(cls):
        try:
            kafka_broker.find()
        except kafka_broker.Missing as missing:
            raise unittest.SkipTest(str(missing)) from None
        if shutil.which("kcat") is None:
            raise unittest.SkipTest("no kcat (scripts/install --all)")

    def job(self, broker_settings="", **more):
        """A broker with these settings besides its own, and a job beside it, in folders of their own."""
        folder = os.path.realpath(counter_job.tempfile.mkdtemp(prefix="muster-broker-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        broker = kafka_broker.Broker(folder, broker_settings)
        self.addCleanup(broker.stop)
        broker.start()
        return TopicJob(broker, **more)

    @staticmethod
    def rng(job):
        return random.Random(job.seed)
