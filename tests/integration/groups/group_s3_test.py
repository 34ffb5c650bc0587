#!/usr/bin/env python3
"""A synchronous group whose state is in a bucket of a real S3 server (moto), behind a proxy that checks every signature and makes
faults: members, the master and the whole run are killed, and the weights equal those of an undisturbed run, bit for bit. Python's
standard library only. Skipped, with the reason, where moto is missing.
"""

import os
import random
import signal
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import counter_job  # noqa: E402
import group_test  # noqa: E402
import processes  # noqa: E402
import s3_proxy  # noqa: E402  (counter_job adds scripts/lib)
import s3_server  # noqa: E402

BUCKET = "snapshots"
PLACE = f"s3://{BUCKET}/jobs/group"
WEATHER = [{"kind": "503", "match": "group/", "times": 4}, {"kind": "cut", "method": "GET", "match": "group/", "times": 2},
           {"kind": "lose_answer", "method": "PUT", "match": "group/", "times": 2}]
SEED = 31


class GroupS3Test(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            cls.server = s3_server.Server()
        except s3_server.Missing as missing:
            raise unittest.SkipTest(str(missing)) from None
        cls.addClassCleanup(cls.server.close)

    def setUp(self):
        self.server.make_bucket(BUCKET)
        self.proxy = s3_proxy.Proxy(self.server.port, s3_server.KEYS["AWS_SECRET_ACCESS_KEY"])
        self.addCleanup(self.proxy.stop)

    def on_s3(self, job):
        job.environment |= s3_server.KEYS
        job.snapshots |= {"directory": PLACE, "s3": {"endpoint": self.proxy.endpoint, "region": "eu-test-1", "pathStyle": True}}

    def stripes(self):
        return [key for key in self.server.keys(BUCKET) if key.startswith("jobs/group/group/")]

    def test_state_on_s3_survives_the_whole_run(self):
        """Everything is killed, so that only S3 has the state; the run after it loses a member and the master in bad weather."""
        with group_test.GroupJob(group_test.options, seed=SEED, records=6000, epochs=2, slow_us=2000) as job:
            self.on_s3(job)
            job.write_data(random.Random(SEED))
            job.write_job()
            run = job.start()
            while job.wait_progress(run, 0.15) == 0:
                pass  # nothing is COMMITTED before a checkpoint is stored
            job.kill(run)
            self.assertTrue(self.stripes(), "the state is in the bucket")
            self.assertFalse(os.path.exists(job.path("state", "snapshots")), "nothing is local")
            self.proxy.faults = [dict(fault) for fault in WEATHER]
            run = job.start()
            committed = job.wait_progress(run, 0.3)
            for role in ("worker", "master"):
                processes.send(job.first_pid(run, role), signal.SIGKILL)
                committed = job.wait_progress(run, min(committed + 0.1, 0.9), committed)
            job.hurry()
            job.wait(run, 0)
            final = set(job.weights().values())
            self.assertEqual(len(final), 1)
            self.assertIn(job.exported(), final, "muster export reads the bucket")
            self.assertEqual(self.proxy.seen.get("bad_signatures", 0), 0)
            disturbed = final.pop()
        self.assertEqual(disturbed, group_test.train(SEED))


def main():
    group_test.options, rest = counter_job.arguments(__doc__, "group_s3_test.py")
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
