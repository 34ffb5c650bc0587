#!/usr/bin/env python3
"""Jobs that learn from a topic of a real Kafka broker: every committed record once, whatever is killed, the broker included.

The topic is written and read by kcat and Kafka's own tools; the weights must be the closed form of what they read. Python's
standard library only. Skipped, with the reason, where Java, kcat or Kafka's jars are missing.
"""

import json
import os
import random
import shutil
import signal
import sys
import time
import unittest

import counter_job
from counter_job import closed_form, processes

import kafka_broker  # of scripts/lib, as processes

JOB = """apiVersion: muster/v1
kind: TrainingJob
metadata: {{name: from-topic}}
spec:
  seed: {seed}
  partitions: 32
  stateDirectory: state
  snapshots: {{interval: 500ms}}
  datasets:
    - {{name: numbers, minibatchSize: 32, minibatchesPerShard: 4, kafka: {kafka}}}
  leases: {{duration: 1500ms, gracePeriod: 1s, heartbeatInterval: 100ms}}
  servers: {{timeout: 1500ms, heartbeatInterval: 100ms}}
  restarts: {{crashLoopExits: 100, backoffInitial: 100ms, backoffMax: 500ms}}
  replicaSpecs:
    ps:     {{replicas: 2}}
    worker: {worker}
"""
TOPIC = "numbers"
GROUP = "muster.from-topic"
options = None


class TopicJob(counter_job.CounterJob):
    """The counter job over a topic: what it must come to is what kcat reads."""

    def __init__(self, broker, **more):
        super().__init__(options, records=0, epochs=1, **more)
        self.broker = broker
        self.kafka = {"brokers": [broker.address], "topic": TOPIC, "maxDelay": "300ms"}
        self.worker = {"replicas": 2}

    def write_job(self):
        worker = {"command": self.command} | self.worker
        with open(self.path("job.yaml"), "w", encoding="utf-8") as file:
            file.write(JOB.format(seed=self.seed, kafka=json.dumps(self.kafka), worker=json.dumps(worker)))

    def stream(self):
        """What `muster status` says of the topic; None while the master cannot be asked."""
        status = self.status()
        return status["datasets"][0]["stream"] | {"done": status["datasets"][0]["epochs"][0]["done"],
                                                  "committed_records": status["datasets"][0]["epochs"][0]["committed"]} if status else None

    def wait_stream(self, run, condition, what, seconds=60):
        end = time.monotonic() + seconds
        while True:
            if run.poll() is not None:
                raise AssertionError(f"the run ended with {run.poll()} before {what}\n{self.last_words()}")
            seen = self.stream()
            if seen is not None and condition(seen):
                return seen
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds} s: {what}; the stream is {seen}\n{self.last_words()}")
            time.sleep(0.02)

    def require_what_kcat_reads(self):
        """The exported weights are those of the committed records, each once."""
        records = kafka_broker.consume(self.broker, TOPIC)
        self.paths = [self._write("read.txt", [value for _, _, _, value in records])]
        self.require_closed_form()
        return len(records)


class KafkaTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            kafka_broker.find()
        except kafka_broker.Missing as missing:
            raise unittest.SkipTest(str(missing)) from None
        if shutil.which("kcat") is None:
            raise unittest.SkipTest("no kcat (scripts/install --all)")

    def job(self, **more):
        """A broker and a job beside it, in one folder."""
        folder = os.path.realpath(counter_job.tempfile.mkdtemp(prefix="muster-broker-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        broker = kafka_broker.Broker(folder)
        self.addCleanup(broker.stop)
        broker.start()
        return TopicJob(broker, **more)

    def test_from_begin_to_end(self):
        """A topic of four partitions that grows while it is trained on, up to what is there when the job is told to end."""
        with self.job(seed=1, slow_us=500) as job:
            job.broker.create_topic(TOPIC, 4)
            kafka_broker.produce(job.broker, TOPIC, range(3000))
            job.write_job()
            run = job.start()
            job.wait_stream(run, lambda seen: seen["committed_records"] >= 3000, "the first records are COMMITTED")
            kafka_broker.produce(job.broker, TOPIC, range(2000, 4000))
            seen = job.wait_stream(run, lambda seen: seen["committed_records"] >= 5000 and seen["lag"] == 0, "all are COMMITTED")
            self.assertEqual(len(seen["partitions"]), 4)
            self.assertEqual(sum(partition["committed"] for partition in seen["partitions"]), 5000)
            job.ask("drain", "job.yaml")
            job.wait(run, 3)
            self.assertEqual(job.require_what_kcat_reads(), 5000)
            lags = job.broker.group_lags(GROUP)
            self.assertEqual({partition: lag for (_, partition), (_, _, lag) in lags.items()}, dict.fromkeys(range(4), 0))

    def test_end_now(self):
        """A job over what a topic holds succeeds by itself, and takes nothing that comes later."""
        with self.job(seed=2, slow_us=0) as job:
            job.broker.create_topic(TOPIC, 2)
            kafka_broker.produce(job.broker, TOPIC, range(1000))
            job.kafka["end"] = "now"
            job.write_job()
            run = job.start()
            job.wait(run, 0)
            self.assertEqual(job.summary()["state"], "succeeded")
            self.assertEqual(job.require_what_kcat_reads(), 1000)

    def test_everything_is_killed(self):
        """SIGKILL of workers, servers, the master and the broker while records come."""
        rng = random.Random(3)
        with self.job(seed=3, slow_us=2000) as job:
            job.broker.create_topic(TOPIC, 3)
            job.worker["replicas"] = 3
            job.write_job()
            produced = 0
            run = None
            for what in ("start", "worker", "ps", "broker", "master", "worker", "broker", "ps", "master", "worker"):
                if what != "broker":
                    kafka_broker.produce(job.broker, TOPIC, range(produced, produced + 800))
                    produced += 800
                if what == "start":
                    run = job.start()
                elif what == "broker":
                    job.broker.kill()
                    time.sleep(rng.uniform(0, 1))
                    job.broker.start()
                else:
                    victims = [pid for pid in processes.descendants(run.pid) if self.is_a(what, pid)]
                    if victims:
                        os.kill(rng.choice(victims), signal.SIGKILL)
                job.wait_stream(run, lambda seen: seen["done"] >= produced - 500, f"training goes on after: {what}")
            job.wait_stream(run, lambda seen: seen["lag"] == 0 and seen["committed_records"] >= produced, "all is COMMITTED")
            self.assertEqual(job.stream()["committed_records"], produced)
            job.ask("drain", "job.yaml")
            job.wait(run, 3)
            self.assertEqual(job.require_what_kcat_reads(), produced)

    @staticmethod
    def is_a(role, pid):
        words = processes.command_line(pid)
        if role == "worker":
            return any("verify_worker" in word for word in words[:1])
        return len(words) > 1 and os.path.basename(words[0]) == "muster" and words[1] == role


if __name__ == "__main__":
    options, rest = counter_job.arguments(__doc__, "tests/integration/kafka_test.py")
    unittest.main(argv=sys.argv[:1] + rest, verbosity=2)
