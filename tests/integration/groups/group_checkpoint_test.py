#!/usr/bin/env python3
"""A synchronous group whose checkpoint cannot be read or written: a file is damaged, missing or a folder, or the disk is full. The status
says which file and why, no worker is started again in vain, and what was put right ends with the weights of an undisturbed run, bit for
bit."""

import argparse
import glob
import os
import random
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import counter_job  # noqa: E402
import group_test  # noqa: E402

UNRESTORABLE = 7


def flip_bit(path):
    with open(path, "r+b") as file:
        file.seek(100)
        byte = file.read(1)[0]
        file.seek(100)
        file.write(bytes([byte ^ 1]))


def put_folder(path):
    os.remove(path)
    os.mkdir(path)


class CheckpointTest(unittest.TestCase):
    def job(self, seed):
        job = group_test.GroupJob(group_test.options, seed=seed, records=6000, epochs=1, slow_us=20000, members=2,
                                  # Short, so that workers would be started again.
                                  spec={"scaler": {"hang": {"timeout": "10s", "firstTimeout": "10s"}}})
        job.write_data(random.Random(seed))
        return job

    def undisturbed(self, seed):
        return group_test.train(seed, epochs=1, members=2)

    def wait_reason(self, job, run, *texts):
        """Until the status has a reason with these texts."""
        end = time.monotonic() + 60
        while True:
            reason = (job.status() or {"reason": ""})["reason"]
            if all(text in reason for text in texts):
                return
            self.assertIsNone(run.poll(), job.said())
            self.assertLess(time.monotonic(), end, reason)
            time.sleep(0.05)

    def end(self, job, run, seed):
        job.hurry()
        job.wait(run, 0)
        final = set(job.weights().values())
        self.assertEqual(len(final), 1)
        self.assertEqual(final.pop(), self.undisturbed(seed))

    def unreadable(self, seed, spoil, *says):
        """Everything is killed, so that only the checkpoint has the state; then `spoil` is done to its files."""
        with self.job(seed) as job:
            job.snapshots["restoreTimeout"] = "15s"
            job.write_job()
            run = job.start()
            committed = 0
            while committed == 0:
                committed = job.wait_progress(run, 0.1)
            job.kill(run)
            files = {}
            for path in glob.glob(job.path("state", "snapshots", "group", "*")):
                with open(path, "rb") as file:
                    files[path] = file.read()
                spoil(path)
            self.assertTrue(files, "there is a checkpoint")
            run = job.start("--no-progress")
            self.wait_reason(job, run, "of the state of the group cannot be read: ", job.path("state", "snapshots", "group"), *says)
            job.wait(run, UNRESTORABLE, 60)
            self.assertIn("the job waits: ", job.said())
            summary = job.summary()
            self.assertEqual(summary["state"], "failed")
            for text in (*says, "Put the files of", "spec.snapshots.restoreTimeout"):
                self.assertIn(text, summary["reason"])
            self.assertEqual(summary["restarts"]["worker"], 0, "they are started again in vain")
            for path, contents in files.items():
                if os.path.isdir(path):
                    os.rmdir(path)
                with open(path, "wb") as file:
                    file.write(contents)
            self.end(job, job.start(), seed)

    def test_a_bit_is_flipped(self):
        self.unreadable(41, flip_bit, " is damaged: it has the checksum ")

    def test_a_piece_is_missing(self):
        self.unreadable(42, os.remove, ": No such file or directory")

    def test_a_folder_is_in_its_place(self):
        self.unreadable(43, put_folder, ": Is a directory")

    def test_the_disk_is_full(self):
        """Training goes on to its end; the job ends when there is room for the checkpoint."""
        seed = 44
        with self.job(seed) as job:
            job.environment |= {"LD_PRELOAD": group_test.options.full_disk, "FULL_DISK_FLAG": job.path("full"),
                                "FULL_DISK_FOLDER": job.path("state", "snapshots")}
            job.touch("full")
            job.write_job()
            run = job.start()
            job.hurry()
            job.wait_progress(run, 1)
            self.wait_reason(job, run, "nothing was committed for ", "'s snapshots is full: ", "No space left on device",
                             job.path("state", "snapshots", "group"))
            self.assertRegex(job.said(), "snapshot-error worker-[01]: .*No space left on device")
            self.assertEqual(job.progress()[1], 0)
            os.remove(job.path("full"))
            job.wait(run, 0)
            self.assertEqual(job.summary()["restarts"]["worker"], 0)
            final = set(job.weights().values())
            self.assertEqual(len(final), 1)
            self.assertEqual(final.pop(), self.undisturbed(seed))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0],
                                     epilog="Example: group_checkpoint_test.py --muster build/dev/cli/muster "
                                            "--trainer build/dev/tests/integration/groups/group_trainer "
                                            "--full-disk build/dev/tests/integration/libfull_disk.so")
    counter_job.add_arguments(parser)
    parser.add_argument("--full-disk", required=True, type=os.path.abspath, help="the library that makes a disk full")
    group_test.options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
