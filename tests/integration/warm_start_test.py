#!/usr/bin/env python3
"""Train, export, and train on from the export in another job, one of whose servers dies: exact weights. Python's standard library only.

The second job has another seed, another number of partitions and other data, half of them numbers of the first. Each of
its rows must be what the export had plus what the second job added, and rows that it never touched must still be there.
"""

import os
import random
import signal
import sys
import unittest

import counter_job
from counter_job import processes

options = None


class WarmStartTest(unittest.TestCase):
    def test_second_job_adds_to_the_export_of_the_first(self):
        rng = random.Random(21)
        with counter_job.CounterJob(options, seed=21, records=4000, epochs=1, slow_us=0) as job:
            job.write_data(rng)
            job.write_job()
            job.wait(job.start(), 0)
            job.require_complete()
            job.require_closed_form("first")

            job.state, job.start_export = "second-state", job.path("first")
            job.seed, job.partitions, job.records, job.epochs = 22, 48, 8000, 2
            job.command = [job.trainer, "--slow-us", "20000", "--slow-while", counter_job.SLOW, "--warm-start", "first"]
            job.write_data(rng, first=2000)
            job.write_job()
            run = job.start()
            committed = 0
            for share in (0.1, 0.5):  # before and after the first snapshot, or nearly so
                committed = job.wait_progress(run, share, committed)
                servers = processes.nodes(run.pid, os.path.basename(job.trainer))["ps"]
                self.assertTrue(processes.send(rng.choice(servers), signal.SIGKILL))
            job.hurry()
            job.wait(run, 0)
            self.assertGreaterEqual(job.require_complete()["restarts"]["ps"], 2)
            job.require_closed_form("second")


def main():
    global options
    options, rest = counter_job.arguments(__doc__, "warm_start_test.py")
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
