#!/usr/bin/env python3
"""Synchronous groups over a virtual network of several hosts, and what breaks there. Needs root, iproute2, nftables.

Each test has three members on hosts of their own and a fault in the middle. The weights must have the bits of a run on one machine in
which nothing breaks. It prints how long the fault kept the group from its next step, and how many steps there were meanwhile.
"""

import argparse
import random
import sys
import time
import unittest

import hosts
import network_job

import group_test  # of tests/integration/groups; network_job adds the folder

SEED = 3
# Of a fault. Longer than a new connection may take, so that the members accuse each other several times.
FAULT_SECONDS = 45
MEMBERS = ("a", "b", "c")


class GroupNetworkJob(group_test.GroupJob, network_job.NetworkJob):
    """The group's job, with a member on each host but that of the master."""

    def connect(self, names, **more):
        self.ps = {"replicas": 0, "joined": 0}
        self.worker = {"replicas": 0}
        self.spec["group"] |= {"minMembers": 2, "maxMembers": len(MEMBERS)}
        super().connect(names, **more)

    def require_complete(self):
        summary = self.summary()
        if summary["state"] != "succeeded":
            raise AssertionError(f"the job ended as {summary['state']}: {summary['reason']}")

    def require_closed_form(self, _):
        """The bits of the weights are compared instead."""

    def step(self):
        return ((self.status() or {}).get("group") or {"step": 0})["step"]


class GroupNetworkTest(unittest.TestCase):
    def setUp(self):
        if why := hosts.why_not():
            self.skipTest(why)

    def job(self, slow_us=300000, late=(), **connect):
        job = GroupNetworkJob(group_test.options, seed=SEED, records=6000, epochs=4, slow_us=slow_us)
        self.addCleanup(self.end, job)
        job.write_data(random.Random(SEED))
        job.connect(("run", *MEMBERS), **connect)
        self.run_ = job.start_job()
        begin = [host for host in MEMBERS if host not in late]
        for host in begin:
            job.join(host, "worker", name=f"far-{host}")
        hosts.wait_for("all are members", lambda: self.members(job) == len(begin), 30)
        job.wait_progress(self.run_, 0.1)
        return job

    @staticmethod
    def members(job):
        return sum(process["standing"] == "member" for process in job.group_processes().values())

    def end(self, job):
        failed = self._outcome.result.failures or self._outcome.result.errors
        job.__exit__(AssertionError if failed else None)

    def finish(self, job):
        job.finish(self.run_)
        final = set(job.weights().values())
        self.assertEqual(len(final), 1, "the members differ")
        self.assertEqual(final.pop(), group_test.train(SEED, epochs=4))

    def watch(self, job, seconds):
        """The longest time between two steps, and how many there were."""
        first = last = job.step()
        began = changed = time.monotonic()
        pause = 0.0
        while (now := time.monotonic()) - began < seconds:
            self.assertIsNone(self.run_.poll(), job.last_words())
            if (step := job.step()) > last:
                pause, last, changed = max(pause, now - changed), step, now
            time.sleep(0.1)
        print(f"the longest pause {max(pause, time.monotonic() - changed):.1f} s, {last - first} steps in {seconds} s", flush=True)
        return last - first

    def cut(self, job, *ways):
        """Packets of these ways vanish without a word; the hosts still find each other's place on the network."""
        for sender, receiver in ways:
            ports = [job.network.hosts[name].port for name in (sender, receiver)]
            job.network.drop(f'iifname "{ports[0]}" oifname "{ports[1]}" ether type ip')

    def recover(self, job):
        job.network.heal()
        recover = hosts.wait_for("all are members again", lambda: self.members(job) == len(MEMBERS), 60)
        print(f"all are members again after {recover:.1f} s", flush=True)
        self.finish(job)

    def test_two_members_cut_off_from_each_other(self):
        job = self.job()
        self.cut(job, ("a", "b"), ("b", "a"))
        self.assertGreater(self.watch(job, FAULT_SECONDS), 0, "the two others go on without one of them")
        self.recover(job)

    def test_one_member_does_not_hear_another(self):
        job = self.job()
        self.cut(job, ("a", "b"))
        self.assertGreater(self.watch(job, FAULT_SECONDS), 0)
        self.recover(job)

    def test_a_member_cut_off_from_the_master_only(self):
        job = self.job()
        self.cut(job, ("a", "run"), ("run", "a"))
        self.assertGreater(self.watch(job, 10), 0)
        self.recover(job)

    def test_the_master_does_not_hear_a_member(self):
        job = self.job()
        self.cut(job, ("a", "run"))
        self.assertGreater(self.watch(job, 10), 0)
        self.recover(job)

    def test_loss_and_delay(self):
        job = self.job(wires={"a": ["--loss", "0.05", "--delay-ms", "20"]})
        self.finish(job)

    def test_a_newcomer_on_a_slow_link(self):
        """It catches up although a new connection for each sum would take longer than a step."""
        job = self.job(slow_us=60000, late=["a"], wires={"a": ["--delay-ms", "35"]})
        step = job.step()
        job.join("a", "worker", name="far-a")
        took = hosts.wait_for("the newcomer is a member", lambda: self.members(job) == len(MEMBERS), 60)
        print(f"a member after {took:.1f} s and {job.step() - step} steps", flush=True)
        self.finish(job)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="Example: group_network_test.py --muster build/dev/cli/muster --trainer build/dev/tests/integration/groups/group_trainer",
    )
    network_job.counter_job.add_arguments(parser)
    group_test.options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
