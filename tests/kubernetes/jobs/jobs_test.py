#!/usr/bin/env python3
"""Jobs on Kubernetes, and what breaks there. A real control plane; the kubelet is a stand-in. Needs root.

Each test runs the counter job as pods, makes a fault in the middle, and compares every row with the closed form. It prints how long
the fault took to be over.
"""

import json
import os
import ssl
import sys
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)
import job_case  # noqa: E402
from cluster_job import wait_for  # noqa: E402
from job_case import report  # noqa: E402


class JobsTest(job_case.JobCase):
    def test_workers_and_servers_are_killed(self):
        job = self.job()
        began = time.monotonic()
        killed = {node: self.cluster.kill(job.name, node) for node in ("worker-0", "ps-1")}
        for node, pod in killed.items():
            wait_for(f"{node} in a new pod", lambda n=node, p=pod: self.cluster.running(job.name, n) != p)
        report("a worker and a server killed, to both running again", began)
        self.finish(job)

    def test_the_jobs_own_pod_is_killed_and_moved(self):
        job = self.job()
        before = self.uids(job)
        for what in ("killed", "deleted"):
            began = time.monotonic()
            done = job.progress()
            pod = self.cluster.running(job.name, "master")
            if what == "killed":
                self.cluster.kill(job.name, "master")
            else:
                self.cluster.plane.kubectl("delete", "pod", pod, "--wait=false")
            wait_for("another pod of the job", lambda: self.cluster.running(job.name, "master") != pod, 120)
            wait_for("progress", lambda d=done: (seen := job.progress()) is not None and seen[0] > d[0], 120)
            wait_for("the view of `muster run`", lambda: "master-restarted" in job.said().rsplit("the job's pod", 1)[-1])
            report(f"the pod of master and scaler {what}, to progress again", began)
        self.assertEqual(self.uids(job), before, "a worker or a server was started again")
        self.finish(job)

    def test_the_api_server_is_away(self):
        seconds = float(os.environ.get("MUSTER_AWAY_SECONDS", "15"))
        # The job must last for both measurements.
        job = self.job(records=int(4 * job_case.RECORDS * max(1, seconds / 15)), share=0.02)
        address = self.cluster.pods(job.name)[self.cluster.running(job.name, "master")]["status"]["podIP"]
        with open(os.path.join(job.state_folder(), "scaler", "token"), encoding="ascii") as file:
            token = file.read().strip()

        def done():
            context = ssl._create_unverified_context()  # noqa: S323  (the token is what protects, and this is loopback)
            host = f"{job.name}-master.default.svc:7172"
            request = urllib.request.Request(f"https://{address}:7172/api/v1/datasets", headers={"Authorization": f"Bearer {token}", "Host": host})
            with urllib.request.urlopen(request, timeout=10, context=context) as answer:
                datasets = json.load(answer)["datasets"]
            return sum(e["records_done"] for d in datasets if d["mode"] == "train" for e in d["epochs"])

        def rate():
            first, began = done(), time.monotonic()
            time.sleep(seconds)
            return (done() - first) / (time.monotonic() - began)

        before = rate()
        self.cluster.plane.kill("apiserver")
        away = rate()
        self.cluster.plane.launch("apiserver")
        self.cluster.plane.wait_for_api()
        print(f"records/s with the API server {before:.0f}, without it for {seconds:.0f} s {away:.0f}: ratio {away / before:.2f}", flush=True)
        self.assertGreater(away, 0)
        self.finish(job)

    def lose(self, fault, heal):
        # Kubernetes gives a silent node up after some 20 s, on a busy machine much later. The job must not end before.
        job = self.job(records=6 * job_case.RECORDS, slow_us=60000, share=0.03)
        machine = {n: self.cluster.pods(job.name)[self.cluster.running(job.name, n)]["spec"]["nodeName"] for n in ("master", "ps-0", "ps-1")}
        # Kubernetes replaces the job's own pod only when the Node object is gone (docs/kubernetes.md).
        node = next((m for m in machine.values() if m != machine["master"]), None)
        if node is None:
            self.skipTest("the scheduler put both servers beside the master")
        there = {n: p for n in ("ps-0", "ps-1", "worker-0", "worker-1") for p in [self.cluster.running(job.name, n)]
                 if self.cluster.pods(job.name)[p]["spec"]["nodeName"] == node}
        began = time.monotonic()
        self.cluster.plane.fault(f"/node/{node}/{fault}")
        try:
            for name, pod in there.items():
                wait_for(f"{name} elsewhere", lambda n=name, p=pod: self.cluster.running(job.name, n) != p, 120)
            report(f"a node with {sorted(there)} {fault}, to all of them running elsewhere", began)
            wait_for("the job's own pod", lambda: job.progress() is not None, 120)
        finally:
            self.cluster.plane.fault(f"/node/{node}/{heal}")
        self.finish(job)

    def test_a_node_falls_silent_and_its_processes_live_on(self):
        self.lose("lose", "heal")

    def test_a_node_is_cut_off(self):
        self.lose("cut", "uncut")

    def test_a_worker_is_evicted(self):
        job = self.job()
        pod = self.cluster.running(job.name, "worker-0")
        began = time.monotonic()
        self.cluster.plane.fault(f"/pod/default/{pod}/evict")
        wait_for("worker-0 in a new pod", lambda: self.cluster.running(job.name, "worker-0") != pod)
        report("evicted, to running again", began)
        self.assertIn("node-evicted", self.kinds(job))
        self.finish(job)

    def test_somebody_deletes_a_server(self):
        job = self.job()
        pod = self.cluster.running(job.name, "ps-0")
        self.cluster.plane.kubectl("delete", "pod", pod, "--wait=false")
        wait_for("ps-0 in a new pod", lambda: self.cluster.running(job.name, "ps-0") != pod)
        self.assertIn("node-deleted", self.kinds(job))
        self.finish(job)

    def test_a_job_waits_for_room_and_says_why(self):
        job = self.job(begin=False, more_spec=lambda j: j.ps.update(resources={"requests": {"cpu": 1000}}))
        wait_for("the reason", lambda: "Insufficient cpu" in job.verb("status", check=False), 90)
        job.verb("cancel")
        job.wait(self.run_, 4, 120)

    def test_what_the_job_asks_of_the_api_server_at_rest(self):
        job = self.job()
        before, began = self.cluster.api_calls(), time.monotonic()
        time.sleep(30)
        minutes = (time.monotonic() - began) / 60
        after = self.cluster.api_calls()
        print("API calls a minute (all clients):", {k: round((after[k] - before.get(k, 0)) / minutes, 1)
                                                    for k in sorted(after) if after[k] > before.get(k, 0)}, flush=True)
        self.finish(job)


if __name__ == "__main__":
    sys.exit(job_case.main(__doc__))
