"""What the tests of whole jobs share: a job that runs as pods, and what must be true at its end.

Not a test: jobs_test.py, faults_test.py and flights_test.py use it.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)
import cluster_job  # noqa: E402
import control_plane  # noqa: E402
import counter_job  # noqa: E402
from cluster_job import wait_for  # noqa: E402

RECORDS = 12000


def report(what, began):
    print(f"{what}: {time.monotonic() - began:.1f} s", flush=True)


class Watch(threading.Thread):
    """Follows how many live pods each node of a job has: two of one node would be above the target."""

    def __init__(self, cluster, job):
        super().__init__(daemon=True)
        self.cluster, self.job, self.most, self.over, self.kubectl = cluster, job, {}, threading.Event(), None

    def run(self):
        while not self.over.wait(0.2):  # a watch ends when the API server does
            with self.cluster.plane.kubectl_begun("get", "pods", "-l", f"muster/job={self.job}", "-o", "json", "--watch",
                                                  "--output-watch-events") as self.kubectl:
                if not self.over.is_set():
                    self.follow(self.kubectl.stdout)
                self.kubectl.kill()

    def follow(self, lines):
        """An event is a line."""
        alive = {}
        for line in lines:
            if self.over.is_set() or not line.endswith("\n"):  # it was killed in the middle of one
                return
            event = json.loads(line)
            self.note(event["type"], event["object"], alive)

    def note(self, kind, pod, alive):
        """`alive`: {node: its live pods}."""
        labels, name = pod["metadata"]["labels"], pod["metadata"]["name"]
        if "muster/node" not in labels:
            return
        names = alive.setdefault(labels["muster/node"], set())
        names.discard(name)
        ends = kind == "DELETED" or "deletionTimestamp" in pod["metadata"]
        if not ends and pod["status"].get("phase") in ("Pending", "Running"):
            names.add(name)
        if len(names) > len(self.most.get(labels["muster/node"], ())):
            self.most[labels["muster/node"]] = set(names)

    def end(self):
        self.over.set()
        if self.kubectl is not None:
            self.kubectl.kill()
        self.join()

    def stop(self):
        self.end()
        assert self.most, "the watch has seen no pod"
        return {node: names for node, names in self.most.items() if len(names) > 1}


class JobCase(unittest.TestCase):
    """A job of each test, in the control plane that main() has started."""

    options, cluster = None, None
    # A control plane that stays has the volumes of earlier tests.
    prefix, names = f"counter-{os.getpid()}", 0

    def new_name(self):
        JobCase.names += 1
        return f"{JobCase.prefix}-{JobCase.names}"

    def job(self, begin=True, share=0.1, more_spec=None, **more):
        job = cluster_job.ClusterJob(self.options, self.cluster, self.new_name(), records=more.pop("records", RECORDS), **more)
        job.write_data(random.Random(1))
        if more_spec:
            more_spec(job)
        self.start(job)
        if begin:
            wait_for("the job to train", lambda: job.progress() is not None or self.ended(job), 120)
            job.wait_progress(self.run_, share)
        return job

    def start(self, job):
        self.addCleanup(self.end, job)
        job.write_job()
        self.watch = Watch(self.cluster, job.name)
        self.watch.start()
        self.run_ = job.start()

    def ended(self, job):
        if self.run_.poll() is not None:
            raise AssertionError(f"muster run ended with {self.run_.poll()}\n{job.last_words()}")

    def end(self, job):
        failed = self._outcome.result.failures or self._outcome.result.errors
        if failed:
            self.keep(job)
        self.cluster.plane.kubectl("delete", "job,pod,service,configmap,secret,serviceaccount,role,rolebinding,pvc", "-l", f"muster/job={job.name}",
                                   "--wait=false", check=False)
        self.watch.end()
        job.__exit__(AssertionError if failed else None)

    def keep(self, job):
        """What a person wants to see of a test that failed."""
        with open(job.path("pods.json"), "w", encoding="utf-8") as file:
            json.dump(self.cluster.get("pods"), file, indent=1)
        for pod in self.cluster.pods(job.name):
            with open(job.path(f"{pod}.log"), "w", encoding="utf-8") as file:
                file.write(self.cluster.plane.kubectl("logs", pod, check=False) or "")
        with contextlib.suppress(KeyError, OSError, shutil.Error, subprocess.CalledProcessError):  # there may be no state yet
            shutil.copytree(os.path.join(job.state_folder(), "logs"), job.path("logs"))
        print(f"kept in {job.folder}\n{job.last_words()}")

    def finish(self, job, seconds=240):
        """The job ends well; every record counts once, every row is the closed form, and no node ever had two pods."""
        if os.path.exists(job.path(counter_job.SLOW)):
            job.hurry()
        job.wait(self.run_, 0, seconds)
        job.require_complete()
        job.require_closed_form()
        self.assertEqual(self.watch.stop(), {}, "a node had several pods at once")

    def uids(self, job):
        return {name: pod["metadata"]["uid"] for name, pod in self.cluster.pods(job.name).items() if "muster/node" in pod["metadata"]["labels"]}

    def kinds(self, job):
        return [event["kind"] for event in job.events()]


def main(description, more=()):
    """Runs the tests of the program. `more`: names of options with a path, beside those of all tests."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    counter_job.add_arguments(parser)
    parser.add_argument("--sdk", required=True, type=os.path.abspath, help="the folder of libmuster.so")
    parser.add_argument("--folder", help="of a control plane that runs")
    for name in more:
        parser.add_argument(f"--{name}", required=True, type=os.path.abspath)
    options, rest = parser.parse_known_args()
    JobCase.options = options
    try:
        control_plane.find()
    except control_plane.Missing as missing:
        print(f"{missing}\nskipped=1")
        return 0
    if os.geteuid() != 0:
        print("the stand-in kubelet mounts volumes, so it needs root\nskipped=1")
        return 0
    if options.folder:
        JobCase.cluster = cluster_job.Cluster(control_plane.ControlPlane(options.folder), options)
        return unittest.main(argv=[sys.argv[0], *rest], exit=False).result.wasSuccessful() is not True
    with tempfile.TemporaryDirectory(prefix="muster-kubernetes-") as folder:
        with control_plane.ControlPlane(folder) as plane:
            os.chmod(folder, 0o755)
            JobCase.cluster = cluster_job.Cluster(plane, options)
            return unittest.main(argv=[sys.argv[0], *rest], exit=False).result.wasSuccessful() is not True
