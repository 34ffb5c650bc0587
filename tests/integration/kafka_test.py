#!/usr/bin/env python3
"""Jobs that learn from a topic of a real Kafka broker: every committed record once, whatever is killed, the broker included.

The topic is written and read by kcat and Kafka's own tools; the weights must be the closed form of what they read. Python's
standard library only. Skipped, with the reason, where Java, kcat or Kafka's jars are missing.
"""

import time

import topic_job
from topic_job import GROUP, TOPIC, kafka_broker


class KafkaTest(topic_job.TopicTest):
    def test_from_begin_to_end(self):
        """A topic of four partitions that grows during the training, up to its end when the job is told to end."""
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
            job.drain(run)
            self.assertEqual(job.require_what_kcat_reads(), 5000)
            lags = job.broker.group_lags(GROUP)
            self.assertEqual({partition: lag for (_, partition), (_, _, lag) in lags.items()}, dict.fromkeys(range(4), 0))

    def test_end_now(self):
        """A job over the present records of a topic succeeds by itself, and ignores later records."""
        with self.job(seed=2, slow_us=0) as job:
            job.broker.create_topic(TOPIC, 2)
            kafka_broker.produce(job.broker, TOPIC, range(1000))
            job.topics[TOPIC]["end"] = "now"
            job.write_job()
            run = job.start()
            job.wait(run, 0)
            self.assertEqual(job.summary()["state"], "succeeded")
            self.assertEqual(job.require_what_kcat_reads(), 1000)

    def test_open_transaction(self):
        """Records that were committed behind an open transaction when the job began belong to it. Records that wait for the transaction count as lag."""
        with self.job(seed=4, slow_us=0) as job:
            job.broker.create_topic(TOPIC, 1)
            kafka_broker.produce(job.broker, TOPIC, range(100))
            with topic_job.Transactions(job.broker, TOPIC, records=50, transactions=1, open_ms=600_000, first=1000) as writer:
                job.wait_without_run(lambda: len(kafka_broker.consume(job.broker, TOPIC, "read_uncommitted")) == 150, "the transaction's records are written")
                kafka_broker.produce(job.broker, TOPIC, range(2000, 2025))
                job.topics[TOPIC]["end"] = "now"
                job.write_job()
                run = job.start()
                seen = job.wait_stream(run, lambda seen: seen["committed_records"] == 100 and seen["lag"] == 0, "what can be read is COMMITTED")
                self.assertEqual((seen["held_back"], seen["partitions"][0]["held_back"], seen["partitions"][0]["end"]), (75, 75, 175))
                job.wait_without_run(lambda: job.broker.group_lags(GROUP).get((TOPIC, 0)) == (100, 175, 75), "Kafka's group tool says the same")
                kafka_broker.produce(job.broker, TOPIC, range(3000, 3010))
                writer.finish()
            job.wait(run, 0)
            self.assertEqual(job.summary()["datasets"][0]["epochs"][0]["records_committed"], 175)
            job.require_closed_form_of([record for record in kafka_broker.consume(job.broker, TOPIC) if record[1] < 175])

    def test_everything_is_killed(self):
        """SIGKILL of workers, servers, the master and the broker while records come."""
        with self.job(seed=3, slow_us=2000) as job:
            rng = self.rng(job)
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
                    job.strike(run, what, rng)
                job.wait_stream(run, lambda seen: seen["done"] >= produced - 500, f"training continues after: {what}")
            job.wait_stream(run, lambda seen: seen["lag"] == 0 and seen["committed_records"] >= produced, "all is COMMITTED")
            self.assertEqual(job.stream()["committed_records"], produced)
            job.drain(run)
            self.assertEqual(job.require_what_kcat_reads(), produced)


if __name__ == "__main__":
    topic_job.main(__doc__, "tests/integration/kafka_test.py")
