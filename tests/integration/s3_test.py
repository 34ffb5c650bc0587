#!/usr/bin/env python3
"""Jobs whose snapshots are in a bucket of a real S3 server (moto), behind a proxy that checks every signature and makes faults.

Servers, the master and the whole run are killed, the service is away for a while, and the weights must be the closed form. Python's
standard library only. Skipped, with the reason, where moto is missing.
"""

import filecmp
import glob
import os
import random
import re
import signal
import subprocess
import sys
import time
import unittest

import counter_job
from counter_job import processes

import s3_proxy  # noqa: E402  (counter_job adds scripts/lib)
import s3_server  # noqa: E402

BAD_INPUT, DRAINED = 2, 3
BUCKET = "snapshots"
PLACE = f"s3://{BUCKET}/jobs/counter"
# What a busy service does now and then.
WEATHER = [{"kind": "503", "match": ".sst", "times": 6}, {"kind": "cut", "method": "GET", "match": ".sst", "times": 3},
           {"kind": "refuse", "times": 3}, {"kind": "lose_answer", "method": "PUT", "times": 3},
           {"kind": "corrupt_answer", "method": "GET", "match": ".sst"}]
options = None


class S3Job(counter_job.CounterJob):
    """The counter job with its snapshots on S3."""

    def __init__(self, proxy, **more):
        super().__init__(options, **({"records": 6000, "epochs": 2, "slow_us": 20000} | more))
        self.environment = dict(s3_server.KEYS)
        self.snapshots |= {"directory": PLACE, "s3": {"endpoint": proxy.endpoint, "region": "eu-test-1", "pathStyle": True}}

    def prepare(self, seed):
        self.write_data(random.Random(seed))
        self.write_job()

    def run_verb(self, *arguments):
        """A verb to its end, with credentials."""
        return subprocess.run([self.muster, *arguments], cwd=self.folder, env=os.environ | self.environment, timeout=120,
                              text=True, capture_output=True, check=False)

    def ask(self, *arguments):
        result = self.run_verb(*arguments)
        if result.returncode != 0:
            raise AssertionError(result.stderr)

    def wait_orphans(self, run):
        """How many orphans the master found when it began this run; waits for its word."""
        end = time.monotonic() + 60
        while time.monotonic() < end and run.poll() is None:
            with open(self.path("state", "logs", "master.log"), encoding="utf-8", errors="replace") as log:
                deleted = re.findall(r"deleting (\d+) orphan", log.read())
            if deleted:
                return int(deleted[-1])
            time.sleep(0.05)
        return 0

    def kill_one(self, run, role):
        """SIGKILL to a process of that role."""
        processes.send(processes.nodes(run.pid, os.path.basename(self.trainer))[role][0], signal.SIGKILL)


class S3Test(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            cls.server = s3_server.Server()
        except s3_server.Missing as missing:
            raise unittest.SkipTest(str(missing)) from None
        cls.addClassCleanup(cls.server.close)

    def setUp(self):
        self.server.make_bucket(BUCKET)
        for key in self.server.keys(BUCKET):
            self.server.delete(BUCKET, key)
        self.proxy = s3_proxy.Proxy(self.server.port, s3_server.KEYS["AWS_SECRET_ACCESS_KEY"])
        self.addCleanup(self.proxy.stop)

    def require_no_secret(self, job):
        """The secret key is in no file that the job wrote, and no process had it among its arguments."""
        found = subprocess.run(["grep", "-rl", s3_server.KEYS["AWS_SECRET_ACCESS_KEY"], job.folder], capture_output=True, text=True, check=False)
        self.assertEqual(found.stdout, "")

    def test_everything_killed(self):
        """A server between upload and report, a server, the master and the run die, in bad weather; then resumed and exported."""
        with S3Job(self.proxy, seed=21, worker_environment={"MUSTER_FAILPOINTS": ""}) as job:
            os.mkdir(job.path("once"))
            job.environment |= {"MUSTER_FAILPOINTS": "snapshot.before-report=crash@9", "MUSTER_FAILPOINTS_ONCE": job.path("once")}
            job.prepare(21)
            self.proxy.faults = [dict(fault) for fault in WEATHER]
            run = job.start()
            committed = job.wait_progress(run, 0.15)
            job.kill_one(run, "ps")
            committed = job.wait_progress(run, 0.3, committed)
            job.kill_one(run, "master")
            committed = job.wait_progress(run, 0.4, committed)
            self.assertTrue(os.listdir(job.path("once")), "a server died between upload and report")
            job.kill(run)
            keys = self.server.keys(BUCKET)
            self.assertIn("jobs/counter/OWNER", keys)
            # As a crash of a writer leaves them.
            self.server.put(BUCKET, "jobs/counter/p00001/e9999-s1.1-base-0123456789abcdef.sst", b"orphan")
            self.server.begin_upload(BUCKET, "jobs/counter/p00001/large.sst")
            self.proxy.faults = [dict(fault) for fault in WEATHER]
            run = job.start()
            self.assertGreaterEqual(job.wait_orphans(run), 1, "orphans are deleted when a run begins")
            orphan = "jobs/counter/p00001/e9999-s1.1-base-0123456789abcdef.sst"
            while orphan in self.server.keys(BUCKET) and run.poll() is None:
                time.sleep(0.05)
            self.assertNotIn(orphan, self.server.keys(BUCKET))
            self.assertEqual(self.server.uploads(BUCKET), 0)
            job.finish(run)
            self.assertEqual(glob.glob(job.path("state", "snapshots")), [], "nothing is local")
            self.assertEqual(self.proxy.seen.get("bad_signatures", 0), 0)
            self.require_no_secret(job)
            job.ask("export", "job.yaml", "--output-dir", f"s3://{BUCKET}/exports/one")
            names = sorted(os.listdir(job.path("export")))
            self.assertEqual([f"exports/one/{name}" for name in names], [key for key in self.server.keys(BUCKET) if key.startswith("exports/")])
            for name in names:
                with open(job.path("fetched"), "wb") as file:
                    file.write(self.server.get(BUCKET, f"exports/one/{name}"))
                self.assertTrue(filecmp.cmp(job.path("export", name), job.path("fetched"), shallow=False), name)
            again = job.run_verb("export", "job.yaml", "--output-dir", f"s3://{BUCKET}/exports/one")
            self.assertNotEqual(again.returncode, 0)
            self.assertIn("has objects already", again.stderr)

    def test_service_away(self):
        """The service is away while the job trains, and a server and the master die meanwhile: the job waits, says so, and loses nothing.
        Then the credentials have expired, and the master dies."""
        with S3Job(self.proxy, seed=22, records=4000) as job:
            job.prepare(22)
            run = job.start("--no-progress")
            committed = job.wait_progress(run, 0.15)
            self.proxy.stop()
            job.kill_one(run, "master")
            job.kill_one(run, "ps")
            reason = ""
            while "127.0.0.1" not in reason and run.poll() is None:
                reason = (job.status() or {"reason": ""})["reason"]
            self.assertIn(self.proxy.endpoint, reason, job.last_words())
            self.proxy.faults = []
            self.proxy.start()
            committed = job.wait_progress(run, 0.3, committed)
            self.proxy.faults = [{"kind": "403", "code": "ExpiredToken", "times": 1 << 30}]
            job.kill_one(run, "master")
            while "session token has expired" not in reason and run.poll() is None:
                reason = (job.status() or {"reason": ""})["reason"]
            self.assertRegex(reason, "nothing was committed for 0:[1-9][0-9], because ps-", job.last_words())
            self.proxy.faults = []
            job.hurry()
            job.wait_progress(run, 0.5, committed)
            job.wait(run, 0)
            job.require_complete()
            job.require_closed_form()

    def test_refused(self):
        """What the check before a run refuses, with the reason; it leaves nothing."""
        with S3Job(self.proxy, seed=23) as job, S3Job(self.proxy, seed=24) as other:
            other.prepare(24)
            run = other.start()
            other.wait_progress(run, 0.05)
            run.send_signal(signal.SIGINT)
            other.wait(run, DRAINED)
            keys = self.server.keys(BUCKET)

            def dry_run():
                job.prepare(23)
                return job.run_verb("run", "job.yaml", "--dry-run")

            result = dry_run()
            self.assertEqual(result.returncode, BAD_INPUT)
            self.assertIn("belong to another job", result.stderr)
            job.snapshots["directory"] = f"s3://{BUCKET}/jobs/free"
            result = dry_run()
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(f"s3://{BUCKET}/jobs/free (every", result.stdout)
            self.assertEqual(self.server.keys(BUCKET), keys)
            self.assertEqual(self.server.uploads(BUCKET), 0)
            for directory, environment, words in (
                ("s3://no-such-bucket/a", {}, "the bucket does not exist"),
                (f"s3://{BUCKET}/a", {"AWS_SECRET_ACCESS_KEY": "wrong"}, "the secret key is wrong"),
                (f"s3://{BUCKET}/a", {"AWS_ACCESS_KEY_ID": ""}, "there are no credentials"),
                ("s3://Bucket/a", {}, "is not the name of a bucket"),
            ):
                job.snapshots["directory"], job.environment = directory, s3_server.KEYS | environment
                result = dry_run()
                self.assertNotEqual(result.returncode, 0)
                self.assertIn(words, result.stderr)
                self.assertIn("spec.snapshots.directory", result.stderr)


def main():
    global options
    options, rest = counter_job.arguments(__doc__, "s3_test.py -k killed")
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
