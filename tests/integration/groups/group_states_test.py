#!/usr/bin/env python3
"""A synchronous group in which one member applies one step otherwise than the others. Of three members, the odd one copies the state of
the others, and the job ends with one model. Two members cannot know which one is right, and the job fails and names both."""

import os
import random
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import counter_job  # noqa: E402
import group_test  # noqa: E402

SEED = 41
ODD = "worker-1"


class GroupStatesTest(unittest.TestCase):
    def run_job(self, members, code):
        """The job after its end, from which the caller reads what it left."""
        spec = {"group": {"globalBatch": group_test.MINIBATCH * group_test.MINIBATCHES, "minMembers": members}}
        job = self.enterContext(group_test.GroupJob(group_test.options, seed=SEED, records=6000, epochs=2, members=members, spec=spec))
        job.command += ["--odd-member", ODD]
        job.write_data(random.Random(SEED))
        job.write_job()
        job.wait(job.start(), code)
        return job

    def test_the_odd_one_of_three_learns(self):
        job = self.run_job(3, 0)
        self.assertEqual(len(job.weights()), 3)
        self.assertEqual(len(set(job.weights().values())), 1, "all have one model")
        self.assertIn(job.exported(), set(job.weights().values()))
        self.assertEqual(job.summary()["restarts"]["worker"], 0)
        said = subprocess.run([job.muster, "events", "job.yaml"], cwd=job.folder, text=True, capture_output=True, check=True,
                              timeout=60).stdout
        self.assertRegex(said, rf"group-states-differ.*{ODD}.*its state after step \d+ is not that of most members")

    def test_two_fail(self):
        job = self.run_job(2, 1)
        summary = job.summary()
        self.assertEqual(summary["state"], "failed")
        self.assertRegex(summary["reason"], r"the states after step \d+ differ: worker-0 has [0-9a-f]{16}, worker-1 has [0-9a-f]{16}")
        self.assertEqual(job.weights(), {}, "nobody has a final state")


def main():
    group_test.options, rest = counter_job.arguments(__doc__, "group_states_test.py")
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
