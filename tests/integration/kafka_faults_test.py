#!/usr/bin/env python3
"""Two topics that are written in transactions, some of them aborted, and one of them compacted, under a storm of faults: every committed record once.

Workers, servers, the master and the broker are killed, and the broker is stopped and started in good order, while records come. What
kcat reads (read_committed) is what the weights must hold; an aborted record has a number that no committed one has. Python's standard
library only. Skipped, with the reason, where Java, kcat or Kafka's jars are missing.
"""

import collections
import contextlib
import time

import topic_job
from topic_job import TOPIC, Transactions, kafka_broker

COMPACTED = "compacted"
FIRST = {TOPIC: 0, COMPACTED: 10_000_000}
BEFORE = 20_000_000  # numbers that the compacted topic holds before the job
PARTITIONS = 2
# The targets, one after the other in a seeded order. With each fault of the broker, another process is killed while it is away.
ALONE = {"worker": 5, "ps": 5, "master": 3}
BROKER = {"broker killed": 2, "broker stopped": 2}
PROGRESS = 300  # records done between two faults


class KafkaFaultsTest(topic_job.TopicTest):
    def compacted_topic(self, broker):
        """Makes it, and what happened to it: the topic that the job finds has lost superseded records, and none while the job runs."""
        broker.create_topic(COMPACTED, PARTITIONS, cleanup_policy="compact", min_cleanable_dirty_ratio=0.01, segment_ms=200,
                            segment_bytes=8192, min_compaction_lag_ms=0)
        with Transactions(broker, COMPACTED, partitions=PARTITIONS, transactions=150, records=20, abort_every=5, keys=100,
                          first=BEFORE, aborted_first=600_000_000) as writer:
            figures = writer.finish(at_once=False)
        end = time.monotonic() + 60
        while len(kafka_broker.consume(broker, COMPACTED)) > figures["records"] // 2:
            self.assertLess(time.monotonic(), end, "the topic is not compacted")
        broker.set_topic(COMPACTED, min_compaction_lag_ms=86_400_000)
        broker.stop()  # a cleaning that has begun
        broker.start()
        records = kafka_broker.consume(broker, COMPACTED)
        return figures, records

    def storm(self, job, run):
        """Faults one after the other, and training continues after each; how many of each kind there were."""
        rng = self.rng(job)
        plan = [*collections.Counter(ALONE).elements(), *collections.Counter(BROKER).elements()]
        rng.shuffle(plan)
        faults = collections.Counter()
        for what in plan:
            before = self.done(job.wait_streams(run, lambda seen: True, "status"))
            faults[what] += 1
            if what in BROKER:
                job.broker.kill() if what == "broker killed" else job.broker.stop()
                other = rng.choice(tuple(ALONE))
                job.strike(run, other, rng)
                faults[other] += 1
                job.broker.start()
            else:
                job.strike(run, what, rng)
            job.wait_streams(run, lambda seen: self.done(seen) >= before + PROGRESS, f"training continues after: {what}")
        return faults

    @staticmethod
    def done(streams):
        return sum(stream["done"] for stream in streams.values())

    def test_transactions_and_compaction(self):
        with self.job(seed=11, slow_us=1000, topics=(TOPIC, COMPACTED)) as job:
            figures, before = self.compacted_topic(job.broker)
            compacted_away = figures["records"] - len(before)
            self.assertGreater(compacted_away, 0)
            job.broker.create_topic(TOPIC, PARTITIONS)
            job.write_job()
            run = job.start()
            with contextlib.ExitStack() as stack:
                writers = [stack.enter_context(Transactions(job.broker, topic, partitions=PARTITIONS, records=records, abort_every=4,
                                                            keys=100, pause_ms=pause, first=FIRST[topic]))
                           for topic, records, pause in ((TOPIC, 60, 30), (COMPACTED, 10, 50))]
                faults = self.storm(job, run)
                written = sum((collections.Counter(writer.finish()) for writer in writers), collections.Counter(figures))
            committed = {topic: kafka_broker.consume(job.broker, topic) for topic in job.topics}
            job.wait_read(run, committed)
            job.drain(run)
            self.require_exact(job, before, committed)
            uncommitted = sum(len(kafka_broker.consume(job.broker, topic, "read_uncommitted")) for topic in job.topics)
            records = sum(map(len, committed.values()))
            # Otherwise, the fault could not have lost anything.
            self.assertGreater(uncommitted, records)
            self.assertGreaterEqual(sum(faults.values()), 20)
            print(f"faults: {sum(faults.values())} ({', '.join(f'{kind} {count}' for kind, count in sorted(faults.items()))}); "
                  f"records committed: {records}, of aborted transactions in the log: {uncommitted - records}; "
                  f"transactions: {written['committed']} committed, {written['aborted']} aborted, {written['unsure']} unsure; "
                  f"compacted away: {compacted_away}; wrong rows: 0", flush=True)

    def require_exact(self, job, before, committed):
        """The weights and the job's figures equal the records that kcat has read; nothing was compacted while the job ran."""
        self.assertLessEqual(set(before), set(committed[COMPACTED]))
        self.assertEqual(committed, {topic: kafka_broker.consume(job.broker, topic) for topic in job.topics})
        self.assertEqual({topic: stream["committed_records"] for topic, stream in job.streams().items()},
                         {topic: len(records) for topic, records in committed.items()})
        job.require_closed_form_of(sum(committed.values(), []))


if __name__ == "__main__":
    topic_job.main(__doc__, "tests/integration/kafka_faults_test.py")
