#!/usr/bin/env python3
"""The flights of examples/ on Kubernetes, undisturbed, and with a worker, a server and the job's own pod killed. Needs root.

Both runs have every record committed once and nothing failed, and what the kills change of the metrics is within what asynchronous
training changes anyway. A real control plane; the kubelet is a stand-in.
"""

import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)
import cluster_job  # noqa: E402
import job_case  # noqa: E402
from cluster_job import wait_for  # noqa: E402
from job_case import report  # noqa: E402

EXAMPLE = os.path.join(cluster_job.TESTS, "..", "examples", "flights", "kubernetes")
CLAIM = "flights-claim"
IMAGE = "muster-flights:1"
EPOCHS = 3
# As for the demo (tests/integration/demo_test.py).
AUC_MIN, LOG_LOSS_MAX, DIFFERENCE_MAX = 0.81, 0.435, 0.005

COMMAND = "command: [flights_trainer],"
# A worker waits before each of its shards, about a hundred. Otherwise a fast machine is done before the last kill.
SLOW = "slot.after-enter=delay:250ms"


class FlightsJob(cluster_job.ClusterJob):
    """Job file and claim of the example, under other names. Its image is a mount of the programs and the data."""

    def __init__(self, options, cluster, name, slow):
        with open(os.path.join(options.data, "train.csv"), encoding="utf-8") as file:
            records = sum(1 for _ in file) - 1
        super().__init__(options, cluster, name, records=records, epochs=EPOCHS)
        self.slow = slow
        cluster.add_image(IMAGE, options.flights, {"/data": options.data})

    def read_example(self, name, *parts):
        """A file of the example; every job has a claim of its own."""
        with open(os.path.join(EXAMPLE, name), encoding="utf-8") as file:
            text = file.read()
        for part in (CLAIM, *parts):
            assert part in text, text
        return text.replace(CLAIM, f"{self.name}-claim")

    def write_job(self):
        text = self.read_example("job.yaml", "name: flights}", f"image: {IMAGE}", f"epochs: {EPOCHS},", COMMAND)
        if self.slow:
            text = text.replace(COMMAND, f"{COMMAND} env: {{MUSTER_FAILPOINTS: '{SLOW}'}},")
        with open(self.path("job.yaml"), "w", encoding="utf-8") as file:
            file.write(text.replace("name: flights}", f"name: {self.name}}}"))
        self.cluster.plane.kubectl("apply", "-f", "-", text=self.read_example("claim.yaml"))

    def require_complete(self):
        """Every record is committed once, and no shard failed. Returns the summary."""
        summary = self.summary()
        assert summary["state"] == "succeeded", summary
        for dataset in summary["datasets"]:
            assert len(dataset["epochs"]) == self.epochs, dataset
            for epoch in dataset["epochs"]:
                assert epoch["records_committed"] == epoch["records_expected"] > 0, (dataset["name"], epoch)
                assert epoch["shards"]["failed"] == 0 and epoch["rejected_records"] == 0, (dataset["name"], epoch)
        assert summary["datasets"][0]["epochs"][0]["records_expected"] == self.records, summary
        return summary


class FlightsTest(job_case.JobCase):
    def train(self, kills=()):
        """The summary of a run in which nodes are killed, one as soon as the last one has recovered."""
        job = FlightsJob(self.options, self.cluster, self.new_name(), slow=bool(kills))
        began = time.monotonic()
        self.start(job)
        for node in kills:
            self.kill(job, node)
        job.wait(self.run_, 0, 240)
        wall, summary = time.monotonic() - began, job.require_complete()
        self.assertEqual(self.watch.stop(), {}, "a node had several pods at once")
        metrics = summary["metrics"]["test"]
        print(f"killed {list(kills)}: test AUC {metrics['auc']:.4f}, log loss {metrics['logloss']:.4f}, {wall:.1f} s from `muster run` "
              f"to its end, restarts {summary['restarts']}, "
              f"{summary['counters']['redelivered_minibatches']} minibatches delivered again", flush=True)
        self.assertGreaterEqual(metrics["auc"], AUC_MIN)
        self.assertLessEqual(metrics["logloss"], LOG_LOSS_MAX)
        return summary

    def kill(self, job, node):
        """Kills it once something is committed, and returns when it runs again and the job has progressed."""
        wait_for("a committed record", lambda: (seen := job.progress()) is not None and seen[1] > 0 or self.ended(job), 120)
        began = time.monotonic()
        pod = self.cluster.kill(job.name, node)
        wait_for(f"{node} in a new pod", lambda: self.cluster.running(job.name, node) != pod, 120)
        done = wait_for("the master", job.progress, 120)[0]
        self.assertLess(done, job.records * job.epochs, f"the job was over before {node} was back")
        wait_for("progress", lambda: (seen := job.progress()) is not None and seen[0] > done or self.ended(job), 120)
        report(f"{node} killed, to progress from {done / job.records / job.epochs:.0%} on", began)

    def test_kills_change_nothing(self):
        plain = self.train()
        killed = self.train(kills=("worker-0", "ps-1", "master"))
        for role in ("worker", "ps"):
            self.assertEqual(plain["restarts"][role], 0, role)
            self.assertEqual(killed["restarts"][role], 1, role)
        for name in ("auc", "logloss"):
            self.assertLessEqual(abs(killed["metrics"]["test"][name] - plain["metrics"]["test"][name]), DIFFERENCE_MAX, name)


if __name__ == "__main__":
    sys.exit(job_case.main(__doc__, more=("flights", "data")))
