#!/usr/bin/env python3
"""Kafka's consumer-group tool and `muster status` show the same lag: exactly at rest, and under load within the records that pass meanwhile.

Python's standard library only. Skipped, with the reason, where Java, kcat or Kafka's jars are missing.
"""

import topic_job
from topic_job import GROUP, TOPIC, Transactions, kafka_broker

PARTITIONS = 3
LOOKS = 4  # at the tool, under load


class KafkaLagTest(topic_job.TopicTest):
    @staticmethod
    def told(broker):
        """{partition: (committed, end, lag)} of Kafka's tool."""
        return {partition: told for (topic, partition), told in broker.group_lags(GROUP).items() if topic == TOPIC}

    @staticmethod
    def of(stream, *names):
        """{partition: the values of these names} of `muster status`."""
        return {partition["partition"]: tuple(partition[name] for name in names) for partition in stream["partitions"]}

    def require_same_at_rest(self, job, run, lag):
        """The job commits at most once a second, so the tool is asked until it shows the new offsets."""
        stream = job.wait_stream(run, lambda seen: seen["lag"] == lag, f"a lag of {lag}")
        expected = self.of(stream, "committed", "stable_end", "lag")
        told = job.wait_until(run, lambda: self.told(job.broker),
                              lambda told: {p: committed for p, (committed, _, _) in told.items()}
                              == {p: committed for p, (committed, _, _) in expected.items()}, "the group is told")
        self.assertEqual(told, expected)
        self.assertEqual(sum(lag for _, _, lag in told.values()), lag)
        print(f"at rest, by partition (committed, end, lag): status {expected}, tool {told}", flush=True)

    def test_at_rest(self):
        """All is COMMITTED; then records come that are not trained."""
        with self.job(seed=21, slow_us=0) as job:
            job.broker.create_topic(TOPIC, PARTITIONS)
            kafka_broker.produce(job.broker, TOPIC, range(2000))
            job.silence = "60s"
            job.write_job()
            run = job.start()
            job.wait_stream(run, lambda seen: seen["committed_records"] == 2000, "the first records are COMMITTED")
            self.require_same_at_rest(job, run, lag=0)
            with job.paused(run, "worker"):
                kafka_broker.produce(job.broker, TOPIC, range(2000, 2700))
                self.require_same_at_rest(job, run, lag=700)
            self.require_same_at_rest(job, run, lag=0)
            job.drain(run)
            self.assertEqual(job.require_what_kcat_reads(), 2700)

    def test_under_load(self):
        """The tool's figures lie between the status before and the status after."""
        with self.job(seed=22, slow_us=2000) as job:
            job.broker.create_topic(TOPIC, PARTITIONS)
            job.write_job()
            run = job.start()
            with Transactions(job.broker, TOPIC, partitions=PARTITIONS, pause_ms=10, abort_every=10) as writer:
                job.wait_stream(run, lambda seen: seen["committed_records"] > 0, "training")
                for _ in range(LOOKS):
                    self.look(job, run)
                writer.finish()
            read = kafka_broker.consume(job.broker, TOPIC)
            job.wait_read(run, {TOPIC: read})
            job.drain(run)
            job.require_closed_form_of(read)

    def look(self, job, run):
        """The group gets the COMMITTED offsets a second later, or more on a busy machine. So the tool is asked until it shows those of the first look."""
        before = job.wait_stream(run, lambda seen: True, "status")
        floor = self.of(before, "committed", "stable_end")
        told = job.wait_until(run, lambda: self.told(job.broker),
                              lambda told: all((told.get(p, (None,))[0] or 0) >= committed for p, (committed, _) in floor.items()),
                              "the group is told")
        after = job.wait_stream(run, lambda seen: all(end >= told[p][1] for p, (end,) in self.of(seen, "stable_end").items()),
                                "the status knows what the tool knows")
        ceiling = self.of(after, "committed", "stable_end")
        self.assertEqual(told.keys(), ceiling.keys())
        for p, (committed, end, lag) in told.items():
            self.assertTrue(floor[p][0] <= committed <= ceiling[p][0], f"partition {p}: {floor[p]}, {told[p]}, {ceiling[p]}")
            self.assertTrue(floor[p][1] <= end <= ceiling[p][1], f"partition {p}: {floor[p]}, {told[p]}, {ceiling[p]}")
            self.assertEqual(lag, end - committed)
        self.assertGreater(sum(committed for committed, _ in ceiling.values()), sum(committed for committed, _ in floor.values()))
        print(f"under load, sums of (committed, lag): status {self.sums(before)}, then tool "
              f"{(sum(c for c, _, _ in told.values()), sum(lag for _, _, lag in told.values()))}, then status {self.sums(after)}", flush=True)

    def sums(self, stream):
        return tuple(map(sum, zip(*self.of(stream, "committed", "lag").values())))


if __name__ == "__main__":
    topic_job.main(__doc__, "tests/integration/kafka_lag_test.py")
