"""The flights as a topic of a real Kafka broker, to which they are written while the job trains."""

import datetime
import os
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))
import kafka_broker  # noqa: E402

RATE = 8000  # records a second
START_SECONDS = 8  # until the job reads
TICK = 0.05


class Produced(threading.Thread):
    """Writes the records at a steady rate, each to a random partition, and ends."""

    def __init__(self, broker, topic, lines):
        super().__init__()
        # A batch is sent at once, and each record draws its partition: what waits in the producer would count as the job's delay.
        self.cat = subprocess.Popen(["kcat", "-q", "-P", "-b", broker.address, "-t", topic, "-X", "linger.ms=5",
                                     "-X", "sticky.partitioning.linger.ms=0"], stdin=subprocess.PIPE)
        self.lines, self.stopped = lines, threading.Event()

    def run(self):
        done, begin = 0, time.monotonic()
        while done < len(self.lines) and not self.stopped.is_set():
            due = min(len(self.lines), int((time.monotonic() - begin + TICK) * RATE))
            self.cat.stdin.write("".join(line + "\n" for line in self.lines[done:due]).encode())
            self.cat.stdin.flush()
            done = due
            self.stopped.wait(TICK)
        self.cat.stdin.close()
        self.cat.wait()


class Topics:
    """A broker, and jobs that read a topic of `partitions` partitions on it."""

    def __init__(self, folder):
        self.broker = kafka_broker.Broker(folder)

    def __enter__(self):
        self.broker.start()
        return self

    def __exit__(self, *_):
        self.broker.stop()

    def begin(self, name, partitions, lines):
        """Creates a topic and begins to write it. Returns the dataset and what must be joined."""
        self.broker.create_topic(name, partitions)
        end = time.time() + START_SECONDS + len(lines) / RATE
        words = datetime.datetime.fromtimestamp(end, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        produced = Produced(self.broker, name, lines)
        produced.start()
        kafka = {"brokers": [self.broker.address], "topic": name, "start": "earliest", "end": words, "maxDelay": "300ms"}
        return [{"name": "train", "minibatchSize": 256, "minibatchesPerShard": 4, "kafka": kafka}], produced
