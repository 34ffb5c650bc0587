#!/usr/bin/env python3
"""Topics that lose records, grow, and are deleted while a job trains on them: nothing is skipped silently.

Retention takes what was not trained in time; a partition is added; the topic is deleted and created again. Python's standard library only.
Skipped, with the reason, where Java, kcat or Kafka's jars are missing.
"""

import json
import re
import shutil

import topic_job
from topic_job import TOPIC, kafka_broker

FAILED = 1  # exit code of a run


class KafkaLossTest(topic_job.TopicTest):
    def setUp(self):
        self.log = {}  # {topic partition: numbers, by offset}

    def write(self, job, partition, numbers):
        """Each record has the offset that follows from the ones before: no test has to read it in time."""
        kafka_broker.produce(job.broker, TOPIC, numbers, partition)
        self.log.setdefault(partition, []).extend(numbers)

    def produced(self):
        """As kafka_broker.consume(), of all that there was."""
        return [(partition, offset, None, number) for partition, log in self.log.items() for offset, number in enumerate(log)]

    def test_retention(self):
        """Workers stand still while records expire: an event before it, FAILED ranges with their offsets after it, and the rest exactly."""
        with self.job(seed=31, slow_us=0) as job:
            rng = self.rng(job)
            job.broker.create_topic(TOPIC, 2, segment_ms=1000)
            for partition in range(2):
                self.write(job, partition, range(500 * partition, 500 * partition + 500))
            job.write_job()
            run = job.start()
            job.wait_stream(run, lambda seen: seen["committed_records"] == 1000, "the first records are COMMITTED")
            job.broker.set_topic(TOPIC, retention_ms=10_000)
            job.strike(run, "master", rng)  # its successor asks again how long records are kept
            job.wait_until(run, lambda: job.events("master-restarted"), bool, "another master")
            with job.paused(run, "worker"):
                for partition in range(2):
                    self.write(job, partition, range(1000 + 500 * partition, 1500 + 500 * partition))
                near = job.wait_events(run, "retention-near", 2)
                job.wait_stream(run, lambda seen: sum(p["lost"] for p in seen["partitions"]) == 1000, "they are lost")
            job.broker.set_topic(TOPIC, retention_ms=86_400_000)
            self.write(job, 0, range(2000, 2500))
            job.wait_stream(run, lambda seen: seen["committed_records"] == 1500 and seen["lag"] == 0, "the rest is COMMITTED")
            self.assertEqual({p for p in range(2) for text in near if f"of topic '{TOPIC}', partition {p}," in text}, {0, 1})
            kinds = job.events()
            self.assertLess(kinds.index("retention-near"), kinds.index("shard-failed"))
            self.require_nothing_silent(job, near)

    def test_drained_too_long(self):
        """The same while no job runs."""
        with self.job(seed=32, slow_us=0) as job:
            job.broker.create_topic(TOPIC, 1, segment_ms=1000)
            job.write_job()
            run = job.start()
            self.write(job, 0, range(200))
            job.wait_stream(run, lambda seen: seen["committed_records"] == 200, "the first records are COMMITTED")
            job.drain(run)
            self.write(job, 0, range(200, 500))
            job.broker.set_topic(TOPIC, retention_ms=1000)
            job.wait_without_run(lambda: not kafka_broker.consume(job.broker, TOPIC), "the records are gone")
            job.broker.set_topic(TOPIC, retention_ms=86_400_000)
            self.write(job, 0, range(500, 800))
            run = job.start()
            job.wait_stream(run, lambda seen: seen["committed_records"] == 500 and seen["lag"] == 0, "the rest is COMMITTED")
            self.require_nothing_silent(job)

    def test_gone_on_lease(self):
        """Records that go when a worker has their range, and has not read them; and a range that keeps some of its records. The first
        failure makes a shard FAILED, so that no test looks in between."""
        slow = {"MUSTER_FAILPOINTS": "exchange.after-reply=delay:1500ms"}
        with self.job(seed=35, slow_us=0, worker_environment=slow) as job:
            job.silence, job.failures_max, job.worker["replicas"] = "60s", 1, 1
            job.broker.create_topic(TOPIC, 1)
            self.write(job, 0, range(384))  # three ranges
            job.write_job()
            run = job.start()
            job.wait_until(run, lambda: self.shards(job, "leased"), bool, "a range is leased")
            with job.paused(run, "worker"):
                job.broker.delete_records(TOPIC, {0: 200})
            job.wait_stream(run, lambda seen: seen["committed_records"] == 128, "the last range is COMMITTED")
            job.wait_stream(run, lambda seen: seen["lag"] == 0, "what is lost counts in the lag no more")
            self.require_nothing_silent(job)

    def test_partition_added(self):
        """It is read from its oldest record, though the job began at the end of the others."""
        with self.job(seed=33, slow_us=0) as job:
            job.broker.create_topic(TOPIC, 2)
            kafka_broker.produce(job.broker, TOPIC, range(300))
            unread = kafka_broker.consume(job.broker, TOPIC)
            job.topics[TOPIC]["start"] = "latest"
            job.silence = "60s"
            job.write_job()
            run = job.start()
            job.wait_stream(run, lambda seen: len(seen["partitions"]) == 2, "the topic is known")
            kafka_broker.produce(job.broker, TOPIC, range(300, 500))
            job.wait_stream(run, lambda seen: seen["committed_records"] == 200, "what came is COMMITTED")
            with job.paused(run, "master"):
                job.broker.add_partitions(TOPIC, 3)
                kafka_broker.produce(job.broker, TOPIC, range(500, 900), partition=2)
            self.assertIn("1 more than before", job.wait_events(run, "stream-partitions", 2)[1])
            seen = job.wait_stream(run, lambda seen: seen["committed_records"] == 600 and seen["lag"] == 0, "all is COMMITTED")
            self.assertEqual([(p["begin"], p["committed"]) for p in seen["partitions"] if p["partition"] == 2], [(0, 400)])
            job.drain(run)
            job.require_closed_form_of([record for record in kafka_broker.consume(job.broker, TOPIC) if record not in unread])

    def test_made_anew(self):
        """A topic that is deleted is waited for; one of the same name that was seen with less in it is another, though it has more a moment later."""
        with self.job(seed=34, slow_us=0) as job:
            job.broker.create_topic(TOPIC, 1)
            kafka_broker.produce(job.broker, TOPIC, range(1000))
            job.write_job()
            run = job.start()
            job.wait_stream(run, lambda seen: seen["committed_records"] == 1000, "all is COMMITTED")
            job.broker.delete_topic(TOPIC)
            job.wait_events(run, "stream-gone")
            job.broker.create_topic(TOPIC, 1)
            job.wait_without_run(lambda: job.events("stream-reachable"), "the master has seen that it is there again")
            kafka_broker.produce(job.broker, TOPIC, range(3000))
            job.wait(run, FAILED)
            summary = job.summary()
            self.assertEqual(summary["state"], "failed")
            self.assertRegex(summary["reason"], f"topic '{TOPIC}', partition 0, ends before offsets that are already cut into shards.*deleted and created again")
            self.assertEqual(summary["datasets"][0]["epochs"][0]["records_committed"], 1000)
            self.assertNotIn("SIGTERM", job.said(), "a worker waits for librdkafka, which does not end")

    def test_offsets(self):
        """The job file names things that the cluster lacks: offsets, a partition's end, the dead-letter topic. Each is reported, and none is a success."""
        with self.job(seed=36, slow_us=0) as job:
            job.broker.create_topic(TOPIC, 1)
            kafka_broker.produce(job.broker, TOPIC, range(200))
            job.topics[TOPIC]["start"] = {0: 5000}
            job.write_job()
            job.wait(job.start(), FAILED)
            self.assertIn("kafka.start names offset 5000 of partition 0, whose log ends at offset 200", job.summary()["reason"])
            shutil.rmtree(job.path("state"))
            job.topics[TOPIC] |= {"start": "earliest", "end": {0: 300}, "deadLetterTopic": "rejected"}
            job.write_job()
            run = job.start()
            seen = job.wait_stream(run, lambda seen: seen["committed_records"] == 200, "what is there is COMMITTED")
            self.assertIn("topic 'rejected'", seen["dead_letter_trouble"])
            self.assertEqual(len(job.events("dead-letters-held")), 1)
            job.broker.add_partitions(TOPIC, 2)
            kafka_broker.produce(job.broker, TOPIC, range(1000, 1070), partition=1)
            job.wait(run, FAILED)
            self.assertIn("the topic was given a partition 1, for which kafka.end names no offset", job.summary()["reason"])

    def test_dead_letters_made(self):
        """Brokers that make topics by themselves make the one for rejected records when the first comes: no event says that it is missing."""
        with self.job(seed=37, slow_us=0, broker_settings="auto.create.topics.enable=true\n") as job:
            job.broker.create_topic(TOPIC, 1)
            kafka_broker.produce(job.broker, TOPIC, [*range(200), "nothing like a number"])
            job.topics[TOPIC] |= {"end": "now", "deadLetterTopic": "rejected"}
            job.rejected_max = 1
            job.write_job()
            job.wait(job.start(), 0)
            self.assertEqual(job.events("dead-letters-held"), [])
            self.assertEqual([value for *_, value in kafka_broker.consume(job.broker, "rejected")], ["nothing like a number"])

    def require_nothing_silent(self, job, near=()):
        """Every offset is COMMITTED or in a FAILED range, which says so; the weights are those of the others. Ends the run."""
        stream = job.stream()
        failed = [(self.ranges_of(shard), shard["reasons"]) for shard in self.shards(job, "failed")]
        lost = sum(partition["lost"] for partition in stream["partitions"])
        self.assertGreater(lost, 0)
        self.assertEqual(stream["committed_records"] + lost, len(self.produced()))
        self.assertEqual({p["partition"]: p["committed"] for p in stream["partitions"]}, {p: len(log) for p, log in self.log.items()})
        gone = {(partition, offset) for ranges, _ in failed for partition, first, end in ranges for offset in range(first, end)}
        self.assertEqual(len(gone), lost)
        events = job.events("shard-failed")
        self.assertEqual(len(events), len(failed))
        for ranges, reasons in failed:
            words = [(f"offsets [{first}, ", f"topic '{TOPIC}', partition {partition},") for partition, first, _ in ranges]
            for told in (reasons, events):  # the reason names the range that failed first
                self.assertTrue(any(all(word in text for word in one) for one in words for text in told), f"{words} in {told}")
        job.drain(job.runs[-1])
        job.require_closed_form_of([record for record in self.produced() if record[:2] not in gone])
        print(f"produced: {len(self.produced())} offsets; COMMITTED: {stream['committed_records']}; lost: {lost} in {len(failed)} FAILED "
              f"ranges; wrong rows: 0", *near[:1], events[0], sep="\n  ", flush=True)

    @staticmethod
    def ranges_of(shard):
        """[(partition, first offset, offset after the last)]; a shard has ranges of several partitions if what was due of each is few."""
        ranges = re.findall(rf"{TOPIC}\[(\d+)\] \[(\d+), (\d+)\)", shard["source"])
        if ranges:
            return [tuple(map(int, one)) for one in ranges]
        return [(int(shard["source"].removeprefix(TOPIC + "[").rstrip("]")), shard["first_record"], shard["first_record"] + shard["records"])]

    @staticmethod
    def shards(job, state):
        said = job.said_by("shards", "job.yaml", "--state", state, "--output", "json")
        return json.loads(said)["shards"] if said else []


if __name__ == "__main__":
    topic_job.main(__doc__, "tests/integration/kafka_loss_test.py")
