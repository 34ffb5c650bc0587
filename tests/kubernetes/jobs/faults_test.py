#!/usr/bin/env python3
"""What the cluster refuses to a job's pods, or takes from them, while the job trains. Needs root.

A node that has no pod says why, the others train on without it, and it comes back when the reason is gone. Every row is the closed
form. A real control plane; the kubelet is a stand-in.
"""

import json
import os
import shutil
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)
import cluster_job  # noqa: E402
import job_case  # noqa: E402
from cluster_job import wait_for  # noqa: E402
from job_case import report  # noqa: E402

MIB = 1 << 20
# Of a minibatch: a job lasts minutes, and is told to hurry when everything was seen.
SLOW_US = 100_000
MISSING = "missing:1"


class FaultsTest(job_case.JobCase):
    def node(self, job, name):
        """The node as `muster status` shows it; {} while the master does not answer."""
        return next((node for node in (job.status() or {"nodes": []})["nodes"] if node["name"] == name), {})

    def waits(self, job, name, wait, words):
        """Returns once the node has no pod for that reason, and the job has progressed without it."""
        seen = wait_for(f"{name} to wait: {wait}", lambda: (n := self.node(job, name)).get("wait") == wait and n, 90)
        self.assertIn(words, seen["wait_reason"])
        began = wait_for("the master", job.progress)[0]
        wait_for(f"progress without {name}", lambda: (now := job.progress()) is not None and now[0] > began)
        self.assertEqual(self.node(job, name)["wait"], wait)
        return seen

    def comes_back(self, job, name, gone, what):
        """The node runs in another pod than `gone`."""
        began = time.monotonic()
        wait_for(f"{name} in a new pod", lambda: self.cluster.running(job.name, name) != gone, 120)
        report(f"{what}, to {name} running", began)
        wait_for(f"{name} to work", lambda: self.node(job, name).get("state") == "running")

    def make(self, *objects):
        self.cluster.plane.kubectl("apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def test_quota_rights_and_preemption(self):
        def one_worker_per_machine(job):
            job.worker["resources"] = {"requests": {"cpu": 2.2}}
        job = self.job(records=4 * job_case.RECORDS, slow_us=SLOW_US, share=0.01, more_spec=one_worker_per_machine)
        self.quota(job)
        self.preemption(job)
        self.rights(job)
        self.assertEqual(self.node(job, "worker-1")["restarts"], 3)
        self.finish(job)

    def quota(self, job):
        kubectl = self.cluster.plane.kubectl
        kubectl("create", "quota", job.name, "--hard=pods=1")
        self.addCleanup(kubectl, "delete", "quota", job.name, "--ignore-not-found", check=False)
        wait_for("the quota to count", lambda: self.cluster.get("quota", job.name).get("status", {}).get("used"))
        pod = self.cluster.kill(job.name, "worker-1")
        self.waits(job, "worker-1", "quota", "exceeded quota")
        self.assertIn("node-quota", self.kinds(job))
        kubectl("patch", "quota", job.name, "-p", '{"spec": {"hard": {"pods": "100"}}}')
        self.comes_back(job, "worker-1", pod, "the quota has grown")
        kubectl("delete", "quota", job.name)

    def rights(self, job):
        """First only the right to make pods goes, so that the scaler sees the worker's end; then all of them."""
        kubectl, name = self.cluster.plane.kubectl, f"{job.name}-muster"
        role, binding = self.cluster.get("role", name), self.cluster.get("rolebinding", name)
        kubectl("patch", "role", name, "--type=json", "-p", json.dumps([
            {"op": "replace", "path": "/rules/0/verbs", "value": [verb for verb in role["rules"][0]["verbs"] if verb != "create"]}]))
        pod = self.cluster.kill(job.name, "worker-1")
        self.waits(job, "worker-1", "forbidden", "create")
        self.assertIn("node-forbidden", self.kinds(job))
        kubectl("delete", "rolebinding", name)
        done = job.progress()[0]
        wait_for("progress without rights", lambda: (now := job.progress()) is not None and now[0] > done)
        for part in (role, binding):
            part["metadata"] = {key: part["metadata"][key] for key in ("name", "namespace", "labels")}
        self.make(role, binding)
        self.comes_back(job, "worker-1", pod, "the rights are back")

    def preemption(self, job):
        kubectl, name = self.cluster.plane.kubectl, f"{job.name}-more-important"
        pod = self.cluster.running(job.name, "worker-1")
        machine = self.cluster.pods(job.name)[pod]["spec"]["nodeName"]
        for kind in ("pod", "priorityclass"):
            self.addCleanup(kubectl, "delete", kind, name, "--wait=false", "--ignore-not-found", check=False)
        self.make({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 1000},
                  {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
                   "spec": {"priorityClassName": name, "nodeSelector": {"kubernetes.io/hostname": machine}, "terminationGracePeriodSeconds": 1,
                            "containers": [{"name": "main", "image": "other", "command": ["sleep", "1000"],
                                            "resources": {"requests": {"cpu": "2.5"}}}]}})
        self.waits(job, "worker-1", "unschedulable", "Insufficient cpu")
        kinds = self.kinds(job)
        # If the scaler's watch broke meanwhile, its next list only shows that the pod has gone. It is no exit of its own either way.
        self.assertTrue({"node-preempted", "node-deleted"} & set(kinds), kinds)
        self.assertIn("node-unschedulable", kinds)
        kubectl("delete", "pod", name, "--wait=false")
        self.comes_back(job, "worker-1", pod, "the more important pod is gone")

    def test_an_image_that_cannot_be_had(self):
        def without_image(job):
            job.spec["kubernetes"]["podTemplates"]["worker"] = {"spec": {"containers": [{"name": "muster", "image": MISSING}]}}
        job = self.job(begin=False, records=2 * job_case.RECORDS, slow_us=SLOW_US, more_spec=without_image)
        wait_for("the master", lambda: job.progress() is not None or self.ended(job), 120)
        for worker in ("worker-0", "worker-1"):
            wait_for(f"{worker} to wait", lambda w=worker: self.node(job, w).get("wait") == "image", 90)
            self.give_image(job, worker)
        wait_for("the job to train", lambda: job.progress()[0] > 0, 90)
        pod = self.cluster.kill(job.name, "worker-0")
        self.assertIn(MISSING, self.waits(job, "worker-0", "image", "pull")["wait_reason"])
        self.give_image(job, "worker-0")
        self.comes_back(job, "worker-0", pod, "the image can be had")
        events = job.events()
        self.assertIn("node-image-error", [event["kind"] for event in events])
        # A wait is no exit: only our kill is, and it is no failure of a shard.
        self.assertEqual([e["node"] for e in events if e["kind"] == "node-exited"], ["worker-0"])
        self.finish(job)
        self.assertEqual(job.summary()["restarts"]["worker"], 1)

    def give_image(self, job, node):
        """What a person does about one pod."""
        self.cluster.plane.kubectl("set", "image", f"pod/{self.cluster.newest(job.name, node)['metadata']['name']}", f"muster={cluster_job.IMAGE}")

    def test_workers_are_killed_for_their_memory(self):
        limit = 160 * MIB

        def hungry(job):
            # The pods see this folder, but not all others of this machine.
            library = shutil.copy(self.options.hungry, job.folder)
            job.worker_environment = {"LD_PRELOAD": library, "HUNGRY_FLAG": job.path("hungry"), "HUNGRY_MIB": "180"}
            job.worker["resources"] = {"requests": {"memory": limit // 2}, "limits": {"memory": limit}}
        job = self.job(records=2 * job_case.RECORDS, slow_us=SLOW_US, share=0.02, more_spec=hungry)
        began = time.monotonic()
        before = {worker: self.cluster.running(job.name, worker) for worker in ("worker-0", "worker-1")}
        with open(job.path("hungry"), "w", encoding="ascii"):
            pass
        for worker, pod in before.items():
            wait_for(f"{worker} with more", lambda w=worker, p=pod: self.cluster.running(job.name, w) != p and self.limit(job, w) > limit, 90)
        report("killed for memory, to both running with more", began)
        wait_for("the outcomes", lambda: len(self.decisions(job)) == 2 and all(
            self.node(job, worker).get("state") == "running" for worker in before))
        events = {event["event"]["id"]: event["event"] for event in job.events() if event["source"] == "scaler"}
        for worker, decision in self.decisions(job).items():
            self.assertIn("memory limit of 160 MiB", decision["because"])
            self.assertIn("killed by the kernel", events[decision["cause_id"]]["because"])
            self.assertEqual(decision["before"]["memory_bytes"], limit)
            after = decision["after"]["memory_bytes"]
            self.assertGreaterEqual(after, limit * 3 // 2)
            requested = self.container(job, worker)["resources"]["requests"]["memory"]
            self.assertEqual((self.limit(job, worker), int(requested)), (after, after // 2), worker)
        self.finish(job)

    def test_the_job_is_deleted_without_its_pods(self):
        job = self.job(records=2 * job_case.RECORDS, slow_us=SLOW_US, share=0.02)
        master = self.cluster.running(job.name, "master")
        began = time.monotonic()
        self.cluster.plane.kubectl("delete", "job", job.name, "--cascade=orphan")
        job.wait(self.run_, 1)
        wait_for("all pods to end", lambda: all(pod["status"]["phase"] in ("Succeeded", "Failed") for pod in self.cluster.pods(job.name).values()))
        report("deleted with --cascade=orphan, to the end of all pods", began)
        self.assertIn("was deleted without its pods", self.cluster.plane.kubectl("logs", master))
        with open(os.path.join(job.state_folder(), "summary.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["state"], "drained")
        self.run_ = job.start()  # continues where it was
        wait_for("the job to train", lambda: job.progress() is not None or self.ended(job), 120)
        self.assertGreater(job.progress()[1], 0)
        self.finish(job)

    def container(self, job, node):
        return self.cluster.newest(job.name, node)["spec"]["containers"][0]

    def limit(self, job, node):
        return int(self.container(job, node)["resources"]["limits"]["memory"])

    def decisions(self, job):
        """{node: decision} of the policy for kills for memory."""
        events = [event["event"] for event in job.events() if event["source"] == "scaler"]
        return {e["target"]: e for e in events if e["kind"] == "decision" and e["policy"] == "out-of-memory"}


if __name__ == "__main__":
    sys.exit(job_case.main(__doc__, more=("hungry",)))
