#!/usr/bin/env python3
"""Jobs over a virtual network of several hosts, and what breaks there. Needs root, iproute2, nftables.

Each test has a server and workers on hosts of their own, a fault in the middle, and compares every row with the closed form.
It prints how long the fault took to be noticed and to be over.
"""

import random
import signal
import subprocess
import sys
import time
import unittest

import hosts
import network_job

OPTIONS = None
RECORDS = 24000
# Longer than the time after which a silent node is lost (counter_job.LEASE_SECONDS).
FAULT_SECONDS = 4


def report(**figures):
    print(", ".join(f"{name} {value:.1f} s" for name, value in figures.items()), flush=True)


class NetworkTest(unittest.TestCase):
    def setUp(self):
        if why := hosts.why_not():
            self.skipTest(why)

    def job(self, names=("run", "server", "workers"), begin=True, **more):
        """A job that has begun on these hosts, with a server on one and two workers on another."""
        connect = {key: more.pop(key) for key in ("ipv6", "wires", "advertise", "insecure") if key in more}
        job = network_job.NetworkJob(OPTIONS, records=more.pop("records", RECORDS), **more)
        self.addCleanup(self.end, job)
        job.write_data(random.Random(1))
        job.connect(names, **connect)
        self.run_ = job.start_job()
        if begin:
            job.join("server", "ps")
            job.join("workers", "worker", name="far-0")
            job.wait_progress(self.run_, 0.1)
        return job

    def end(self, job):
        failed = self._outcome.result.failures or self._outcome.result.errors
        job.__exit__(AssertionError if failed else None)

    def test_whole_job(self):
        job = self.job()
        server, worker = job.node("ps-1"), job.node("far-0")
        self.assertEqual((server["host"], worker["host"]), ("server", "workers"))
        for order in (["restart", "job.yaml", "ps-1"], ["resize", "job.yaml", "far-0", "--memory", "1Gi"]):
            code, said = job.try_to_ask(*order)
            self.assertNotEqual(code, 0, said)
            self.assertIn("muster join", said)
        for named, code in ((job.network.hosts["run"].address, 200), ("dashboard.example", 200), ("other.example", 421)):
            self.assertEqual(job.get("workers", "/api/v1/nodes", named)[0], code, named)
        self.assertIn('"host":"server"', job.get("workers", "/api/v1/nodes", "dashboard.example")[1].replace(" ", ""))
        job.finish(self.run_)
        self.assertGreater(job.node("far-0")["worker"]["records_committed"], 0)

    def test_insecure(self):
        """Plain text, because the job file allows it: every process that listens says so."""
        job = self.job(insecure=True)
        self.assertEqual(job.get("workers", "/api/v1/nodes", "dashboard.example")[0], 200)
        self.assertIn("INSECURE", job.network.hosts["run"].run("cat", f"{job.state}/logs/master.log"))
        job.finish(self.run_)

    def test_strangers(self):
        """Who has the token but no certificate, or certificates of another job, gets no place."""
        job = self.job()
        command = ["join", job.master, "--role", "worker", "--token-file", job.path("token"), "--patience", "2", "--state-dir",
                   job.path("home", "join-stranger"), "--name", "stranger"]

        def join(*more):
            words = job.network.hosts["workers"].wrap([job.muster, *command, *more, "--", *job.command], job.folder)
            done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=60)
            return done.returncode, done.stdout + done.stderr

        code, said = join()
        self.assertEqual(code, 2, said)
        self.assertIn("needs the job's certificates", said)
        code, said = join("--insecure")
        self.assertEqual(code, 5, said)
        self.assertIsNone(job.node("stranger"))
        job.finish(self.run_)

    def test_partition(self):
        job = self.job()
        server = job.network.hosts["server"]
        job.network.cut(server)
        detect = job.wait_state("ps-1", "lost")
        time.sleep(FAULT_SECONDS)
        job.network.heal()
        report(detect=detect, recover=job.wait_more(self.run_))
        job.finish(self.run_)

    def test_partition_of_workers(self):
        job = self.job()
        job.network.cut(job.network.hosts["workers"])
        detect = job.wait_state("far-0", "lost")
        time.sleep(FAULT_SECONDS)
        job.network.heal()
        report(detect=detect, recover=job.wait_state("far-0", "running"))
        job.finish(self.run_)

    def test_one_way(self):
        """Workers cannot hear the server, and everybody else can."""
        job = self.job()
        job.network.cut_one_way(job.network.hosts["server"], job.network.hosts["workers"])
        time.sleep(FAULT_SECONDS)
        job.network.heal()
        report(recover=job.wait_more(self.run_))
        job.finish(self.run_)

    def test_one_way_to_the_master(self):
        """The server hears the master, which does not hear it."""
        job = self.job()
        job.network.cut_one_way(job.network.hosts["server"], job.network.hosts["run"])
        detect = job.wait_state("ps-1", "lost")
        time.sleep(FAULT_SECONDS)
        job.network.heal()
        report(detect=detect, recover=job.wait_more(self.run_))
        job.finish(self.run_)

    def test_host_vanishes(self):
        """The server's machine loses its power: no FIN, no RST. Another machine takes its place."""
        job = self.job(names=("run", "server", "workers", "spare"))
        job.network.hosts["server"].power_off()
        detect = job.wait_state("ps-1", "lost")
        job.joins.pop("server").wait()
        job.join("spare", "ps")
        report(detect=detect, recover=job.wait_state("ps-1", "running") + job.wait_more(self.run_))
        job.finish(self.run_)

    def test_forgotten_connections(self):
        """A NAT between the hosts forgets all connections."""
        job = self.job()
        self.assertGreater(job.network.forget_connections(job.network.hosts["server"]), 1)
        began = time.monotonic()
        job.wait_more(self.run_)
        job.wait_state("ps-1", "running")
        job.hurry()
        job.finish(self.run_)
        report(recover=time.monotonic() - began)

    def test_wrong_address(self):
        """A server advertises an address that nobody has: the status says so, until the server is started in another way."""
        job = self.job(begin=False)
        job.join("server", "ps", "--advertise", f"{hosts.NETWORK}.99")
        job.join("workers", "worker", name="far-0")

        def trouble():
            return "ps-1: workers cannot connect" in job.try_to_ask("status", "job.yaml")[1]

        detect = hosts.wait_for("the trouble is shown", trouble, 30)
        job.stop("server")
        job.joins.pop("server").wait(timeout=60)
        job.join("server", "ps")
        report(detect=detect, recover=hosts.wait_for("the trouble is over", lambda: not trouble(), 30))
        job.finish(self.run_)

    def test_loss(self):
        job = self.job(wires={"server": ["--loss", "0.05"]})
        job.finish(self.run_)

    def test_delay(self):
        job = self.job(wires={"server": ["--delay-ms", "50", "--jitter-ms", "20"]}, records=RECORDS // 2)
        job.finish(self.run_)

    def test_reordering(self):
        job = self.job(wires={"server": ["--delay-ms", "10", "--reorder", "0.25"]}, records=RECORDS // 2)
        job.finish(self.run_)

    def test_slow_link(self):
        job = self.job()
        job.network.limit_rate(job.network.hosts["server"], "10mbit")
        job.finish(self.run_)

    def test_ipv6(self):
        job = self.job(ipv6=True)
        job.finish(self.run_)

    def test_name_comes_late(self):
        """The master's name has no address yet when everybody wants to reach it."""
        job = self.job(begin=False, advertise="muster-master")
        job.join("server", "ps")
        job.join("workers", "worker", name="far-0")
        for host, role in (("server", "ps"), ("workers", "worker")):
            hosts.wait_for("the join waits", lambda: "waiting for the master" in job.join_said(host, role), 20)
        job.name_master()
        began = time.monotonic()
        for node in ("ps-1", "far-0", "worker-0"):
            job.wait_state(node, "running")
        report(recover=time.monotonic() - began)
        job.finish(self.run_)

    def test_run_again(self):
        """`muster run` is killed with all that it started, and the job is run again; nodes on other hosts live on meanwhile."""
        job = self.job()
        job.signal(self.run_, signal.SIGKILL)
        self.run_.wait()
        self.run_ = job.start()
        job.wait_more(self.run_)
        job.finish(self.run_)

    def test_worker_leaves(self):
        """A signal to the join of a worker: it hands over its shards, and the job goes on without it."""
        job = self.job()
        job.stop("workers")
        self.assertEqual(job.joins.pop("workers").wait(timeout=60), 0)
        job.finish(self.run_)


if __name__ == "__main__":
    OPTIONS, rest = network_job.counter_job.arguments(__doc__, "network_test.py")
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
