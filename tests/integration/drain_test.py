#!/usr/bin/env python3
"""Single nodes of a running job are drained, by order and by SIGTERM: the job continues, nothing is charged, and the weights are exact.

Python's standard library only.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
import unittest

import counter_job

options = None


def say(job, *arguments):
    """What a verb answers, as JSON."""
    result = subprocess.run([job.muster, *arguments, "--output", "json"], cwd=job.folder, text=True, capture_output=True,
                            check=True, timeout=60)
    return json.loads(result.stdout)


def wait_node(job, run, name, condition):
    """Waits until `condition` holds of the node as the master shows it; returns it."""
    end = time.monotonic() + 60
    node = None
    while time.monotonic() < end and run.poll() is None:
        if (status := job.status()) is not None:
            node = next((n for n in status["nodes"] if n["name"] == name), None)
            if node is not None and condition(node):
                return node
        time.sleep(0.02)
    raise AssertionError(f"{name} is {node}\n{job.last_words()}")


class DrainTest(unittest.TestCase):
    @contextlib.contextmanager
    def running(self):
        """A job on its way; at the end of the block it is finished, and right."""
        # So slow that it lasts a minute unless hurried: snapshots on a busy disk take their time.
        with counter_job.CounterJob(options, seed=21, records=5000, epochs=2, slow_us=400000) as job:
            job.command += ["--at-sigterm", "leave"]
            job.write_data(random.Random(21))
            job.write_job()
            run = job.start()
            job.wait_progress(run, 0.05)
            yield job, run
            job.finish(run)

    def events(self, job, kind, node):
        result = subprocess.run([job.muster, "events", "job.yaml", "--output", "json"], cwd=job.folder, text=True,
                                capture_output=True, check=True, timeout=60)
        events = [json.loads(line) for line in result.stdout.splitlines()]
        return [e for e in events if e["kind"] == kind and e["node"] == node]

    def test_worker(self):
        """It finishes its shards and ends with code 0; the other one does the rest."""
        with self.running() as (job, run):
            answer = say(job, "drain", "job.yaml", "--node", "worker-0", "--wait")
            self.assertEqual((answer["drain"], answer["left"]), ("drained", 0))
            wait_node(job, run, "worker-0", lambda n: n["state"] == "exited" and n["last_exit"] == "exit 0")
            job.wait_progress(run, job.progress()[0] / (job.records * job.epochs) + 0.02)
            self.assertEqual(job.status()["counters"]["redelivered_minibatches"], 0, "what it began it finished")
            self.assertEqual(self.events(job, "shard-failure", "worker-0"), [])

    def test_server(self):
        """It takes new snapshots and still serves. If it is told to end, it also takes snapshots first, and another process follows."""
        with self.running() as (job, run):
            answer = say(job, "drain", "job.yaml", "--node", "ps-0", "--wait")
            self.assertEqual((answer["drain"], answer["left"]), ("drained", 0))
            node = wait_node(job, run, "ps-0", lambda n: n["state"] == "running" and n["drain"] == "drained")
            self.assertEqual(node["server"]["partitions_serving"], node["server"]["partitions"])
            job.wait_progress(run, job.progress()[0] / (job.records * job.epochs) + 0.02)
            say(job, "drain", "job.yaml", "--node", "ps-0", "--undo")
            wait_node(job, run, "ps-0", lambda n: n["drain"] == "none")
            os.kill(node["pid"], signal.SIGTERM)
            wait_node(job, run, "ps-0", lambda n: n["restarts"] == 1 and n["last_exit"] == "exit 0"
                      and n["server"]["partitions_serving"] == n["server"]["partitions"])
            # Whether it gets all its snapshots in the seconds that it takes for them is the machine's affair.
            self.assertEqual(len(self.events(job, "node-drain-began", "ps-0")), 2)
            partitions = say(job, "partitions", "job.yaml")
            self.assertEqual(partitions["total"], job.partitions)

    def test_worker_that_leaves_by_itself(self):
        """If another program tells a worker to end, as at an eviction, it finishes its shard, and another process follows."""
        with self.running() as (job, run):
            node = wait_node(job, run, "worker-0", lambda n: n["state"] == "running" and n["pid"] > 0)
            os.kill(node["pid"], signal.SIGTERM)
            wait_node(job, run, "worker-0", lambda n: n["state"] == "running" and n["restarts"] == 1
                      and n["last_exit"] == "exit 0")
            self.assertEqual(job.status()["counters"]["redelivered_minibatches"], 0, "what it began it finished")
            self.assertEqual(self.events(job, "shard-failure", "worker-0"), [])

    def test_figures(self):
        """What the scaler will look at is there and grows."""
        with self.running() as (job, run):
            wait_node(job, run, "worker-0", lambda n: (times := n["worker"]["times"])["compute_us"] > 0 and times["records_trained"] > 0
                      and 0 < times["minibatches_finished"] <= times["minibatches_begun"])
            wait_node(job, run, "ps-1", lambda n: all(
                n["server"]["counters"][name] > 0 for name in ("pushes", "received_bytes", "sent_bytes", "service_us"))
                and n["server"]["lanes"] > 0 and all(n["server"]["seen_by_workers"][name] > 0 for name in ("pushes", "push_us")))
            end = time.monotonic() + 60
            seen = []
            while time.monotonic() < end:
                seen = say(job, "partitions", "job.yaml")["partitions"]
                if all(p["state"] == "serving" and all(p["traffic"][name] > 0 for name in ("pushes", "moved_rows", "rows")) for p in seen):
                    break
                time.sleep(0.05)
            self.assertEqual([p for p in seen if p["traffic"]["moved_bytes"] <= p["traffic"]["moved_rows"]], [])
            self.assertEqual(len(seen), job.partitions)


def main():
    global options
    options, rest = counter_job.arguments(__doc__, "drain_test.py -k worker")
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
