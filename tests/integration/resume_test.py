#!/usr/bin/env python3
"""A job that is ended again and again, by SIGKILL of everything or by order, and run again: exact weights at the end.

Between two runs no process may be left, what was committed may not get less, and after the last run every row of every
exported table must be the closed form. Python's standard library only.
"""

import glob
import os
import random
import signal
import subprocess
import sys
import time
import unittest

import counter_job
from counter_job import processes

BAD_INPUT, DRAINED, CANCELLED, UNRESTORABLE = 2, 3, 4, 7
options = None


def begin(job, rng):
    job.write_data(rng)
    job.write_job()


class ResumeTest(unittest.TestCase):
    def test_everything_killed(self):
        """SIGKILL to `muster run` takes everything with it: while the nodes start, and while they train."""
        rng = random.Random(11)
        with counter_job.CounterJob(options, seed=11, records=8000, epochs=2, evaluate_records=300, slow_us=20000) as job:
            begin(job, rng)
            committed = 0
            for share in (0.15, None, 0.35, None, 0.5, 0.65):
                run = job.start()
                if share is None:
                    time.sleep(rng.uniform(0, 0.8))
                else:
                    committed = job.wait_progress(run, share, committed)
                    time.sleep(rng.uniform(0, 0.5))
                self.assertIsNone(run.poll(), "the run ended before it was killed: give it more records\n" + job.last_words())
                job.kill(run)
                print(f"SIGKILL, {share or 'starting'}, {committed} committed", flush=True)
            self.assertGreater(committed, 0, "nothing was final before the last kill: the state was not put to use")
            job.finish(job.start())

    def test_ended_by_order(self):
        """Drained by SIGINT, stopped by two of them, drained by `muster drain`, cancelled: each with its exit code."""
        rng = random.Random(12)
        with counter_job.CounterJob(options, seed=12, records=7000, epochs=2, evaluate_records=300, slow_us=20000) as job:
            begin(job, rng)
            committed = 0

            def interrupt(run):
                run.send_signal(signal.SIGINT)

            def interrupt_twice(run):
                """With its workers paused a drain lasts until their leases expire, so that the second one finds it in progress."""
                for pid in processes.nodes(run.pid, os.path.basename(job.trainer))["worker"]:
                    processes.send(pid, signal.SIGSTOP)
                before = job.said().count("draining: no new shards")
                interrupt(run)
                while run.poll() is None and job.said().count("draining: no new shards") == before:
                    time.sleep(0.01)
                interrupt(run)

            orders = [
                (0.1, interrupt, DRAINED, "drained"),
                (0.25, interrupt_twice, DRAINED, "stopped"),
                (0.4, lambda run: job.ask("drain", "job.yaml"), DRAINED, "drained"),
                (0.55, lambda run: job.ask("cancel", "job.yaml", "--reason", "enough"), CANCELLED, "cancelled"),
            ]
            for share, order, code, state in orders:
                run = job.start()
                job.wait_progress(run, share, committed)
                order(run)
                job.wait(run, code, 60)
                summary = job.summary()
                self.assertEqual(summary["state"], state)
                epochs = [e for d in summary["datasets"] if d["mode"] == "train" for e in d["epochs"]]
                committed = sum(e["records_committed"] for e in epochs)
                self.assertLess(committed, job.records * job.epochs, "the job was over before it was ended")
                if state == "drained":
                    self.assertGreaterEqual(committed, share * job.records * job.epochs, "what was done is in the snapshots")
                if state == "cancelled":
                    self.assertIn("enough", summary["reason"])
            job.finish(job.start())

    def test_files_gone(self):
        """The journal is missing, and then a snapshot: each is reported, nothing is deleted, and the job continues when they are back."""
        with counter_job.CounterJob(options, seed=13, records=6000, epochs=1, slow_us=20000) as job:
            job.snapshots["restoreTimeout"] = "3s"
            begin(job, random.Random(13))
            run = job.start()
            job.wait_progress(run, 0.3)
            run.send_signal(signal.SIGINT)
            job.wait(run, DRAINED)

            journal, aside = job.path("state", "journal"), job.path("aside")
            os.rename(journal, aside)
            job.wait(job.start(), BAD_INPUT)
            self.assertIn("the journal of the job 'closed-form' is missing", job.said())
            self.assertFalse(os.path.exists(journal), "an empty one would be in the way of a copy")
            with self.assertRaises(subprocess.CalledProcessError):
                job.ask("export", "job.yaml", "--output-dir", "nothing")
            os.rename(aside, journal)

            lost = sorted(glob.glob(job.path("state", "snapshots", "p*", "*.sst")))[0]
            os.rename(lost, aside)
            run = job.start("--no-progress")
            reason = ""
            while not reason and run.poll() is None:
                reason = (job.status() or {"reason": ""})["reason"]
            self.assertIn(os.path.basename(lost), reason, "while it waits")
            job.wait(run, UNRESTORABLE)
            self.assertIn("the job waits: ps-", job.said())
            summary = job.summary()
            self.assertEqual(summary["state"], "failed")
            self.assertIn(os.path.basename(lost), summary["reason"])
            os.rename(aside, lost)
            job.finish(job.start())


def main():
    global options
    options, rest = counter_job.arguments(__doc__, "resume_test.py -k killed")
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
