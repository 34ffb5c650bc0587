"""The counter job of tests/integration as pods: `muster run --on kubernetes` against a real control plane.

Not a test: jobs_test.py uses it.
"""

import json
import os
import signal
import subprocess
import sys
import time

TESTS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TESTS, "integration"))
sys.path.insert(0, os.path.join(TESTS, "kubernetes", "control_plane"))
import counter_job  # noqa: E402

IMAGE = "muster:test"
POD_USER = 10001


def wait_for(what, done, seconds=60):
    """Waits until done() is true, and returns what it returned."""
    end = time.monotonic() + seconds
    while not (seen := done()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s in vain for {what}")
        time.sleep(0.05)
    return seen


class Cluster:
    """What the tests do with a control plane beside `muster`."""

    def __init__(self, plane, options):
        self.plane, self.muster = plane, options.muster
        self.kubeconfig = os.path.join(plane.folder, "admin.kubeconfig")
        self.images, self.options = {}, options
        self.add_image(IMAGE, options.trainer)

    def add_image(self, name, trainer, mounts=None):
        """An image with Muster, the SDK, and a trainer in its PATH. `mounts`: {place in it: folder of this machine}."""
        programs = {"/opt/muster": self.muster, "/opt/trainer": trainer}
        mounts = {path: os.path.dirname(program) for path, program in programs.items()} | {"/opt/sdk": self.options.sdk} | (mounts or {})
        self.images[name] = {"mounts": mounts, "user": POD_USER,
                             "env": {"PATH": "/opt/muster:/opt/trainer:/usr/bin:/bin", "LD_LIBRARY_PATH": "/opt/sdk"}}
        with open(os.path.join(self.plane.folder, "images.json"), "w", encoding="utf-8") as file:
            json.dump(self.images, file)

    def get(self, *arguments):
        return json.loads(self.plane.kubectl("get", *arguments, "-o", "json") or "{}")

    def pods(self, job):
        """{name: pod} of all pods of the job that are there."""
        return {pod["metadata"]["name"]: pod for pod in self.get("pods", "-l", f"muster/job={job}")["items"]}

    def newest(self, job, node):
        """The newest pod of a node, or of the job itself ("master"); None if there is none."""
        label = ("muster/role", "master") if node == "master" else ("muster/node", node)
        found = [pod for pod in self.pods(job).values() if pod["metadata"]["labels"].get(label[0]) == label[1]]
        return max(found, key=lambda pod: pod["metadata"]["creationTimestamp"] + pod["metadata"]["name"], default=None)

    def running(self, job, node):
        """The name of the node's pod, once it runs."""
        def seen():
            pod = self.newest(job, node)
            return pod is not None and pod["status"].get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp") \
                and pod["metadata"]["name"]
        return wait_for(f"{node} to run", seen)

    def pid(self, pod):
        """Of process 1 of a pod, on this machine."""
        for line in self.plane.fault("/pods").splitlines():
            name, _, pid = line.rsplit(" ", 2)
            if name == f"default/{pod}":
                return int(pid)
        raise AssertionError(f"the stand-in kubelet runs no pod {pod}")

    def kill(self, job, node):
        """SIGKILL to everything in the node's pod. Returns the pod's name."""
        pod = self.running(job, node)
        os.kill(self.pid(pod), signal.SIGKILL)
        return pod

    def api_calls(self):
        """{(verb, resource): number} of the requests that the API server has answered so far."""
        calls = {}
        for line in self.plane.kubectl("get", "--raw", "/metrics").splitlines():
            if line.startswith("apiserver_request_total{"):
                labels = dict(part.split("=", 1) for part in line[line.index("{") + 1:line.rindex("}")].split(",") if "=" in part)
                key = (labels.get("verb", "").strip('"'), labels.get("resource", "").strip('"'))
                calls[key] = calls.get(key, 0) + float(line.rsplit(" ", 1)[1])
        return calls

    def claim_folder(self, claim):
        """The folder of this machine that is the volume of a claim."""
        volume = self.get("pvc", claim)["spec"]["volumeName"]
        return self.get("pv", volume)["spec"]["hostPath"]["path"]


class ClusterJob(counter_job.CounterJob):
    """A counter job whose processes are pods. Data and snapshots lie in the test's folder, which all pods mount."""

    def __init__(self, options, cluster, name, **more):
        super().__init__(options, **more)
        self.cluster, self.name = cluster, name
        os.chmod(self.folder, 0o777)
        self.command[0] = os.path.basename(self.trainer)
        self.command[self.command.index(counter_job.SLOW)] = self.path(counter_job.SLOW)
        mount = {"name": "test-folder", "mountPath": self.folder}
        self.spec["kubernetes"] = {"image": IMAGE, "podTemplates": {"all": {"spec": {
            "volumes": [{"name": "test-folder", "hostPath": {"path": self.folder}}],
            "containers": [{"name": "muster", "volumeMounts": [mount]}]}}}}
        os.mkdir(self.path("snapshots"))
        os.chmod(self.path("snapshots"), 0o777)
        self.snapshots |= {"directory": self.path("snapshots")}

    def write_job(self):
        super().write_job()
        with open(self.path("job.yaml"), encoding="utf-8") as file:
            text = file.read()
        text = text.replace("name: closed-form", f"name: {self.name}").replace('"numbers-*.txt"', f'"{self.path("numbers-*.txt")}"')
        with open(self.path("job.yaml"), "w", encoding="utf-8") as file:
            file.write(text)

    def start(self, *arguments):
        return super().start("--on", "kubernetes", "--kubeconfig", self.cluster.kubeconfig, *arguments)

    def verb(self, *arguments, check=True):
        """A verb of muster, as a person calls it from outside the cluster. Returns what it says."""
        result = subprocess.run([self.muster, arguments[0], "job.yaml", *arguments[1:], "--on", "kubernetes", "--kubeconfig",
                                 self.cluster.kubeconfig], cwd=self.folder, text=True, capture_output=True, check=False, timeout=120)
        if check and result.returncode != 0:
            raise AssertionError(f"muster {' '.join(arguments)} ended with {result.returncode}\n{result.stdout}{result.stderr}")
        return result.stdout

    def status(self):
        text = self.verb("status", "--output", "json", "--no-wait", check=False)
        return json.loads(text) if text.startswith("{") else None

    def events(self):
        return [json.loads(line) for line in self.verb("events", "--output", "json").splitlines() if line.startswith("{")]

    def require_nothing_left(self):
        """Pods are ended by their owner; the test looks at them itself."""

    def state_folder(self):
        return os.path.join(self.cluster.claim_folder(f"{self.name}-state"), self.name)

    def summary(self):
        with open(os.path.join(self.state_folder(), "summary.json"), encoding="utf-8") as file:
            return json.load(file)

    def differences(self, folder="export"):
        """The volumes of the job are folders of this machine, so the export needs no pod."""
        subprocess.run([self.muster, "export", "--state-dir", self.state_folder(), "--output-dir", folder], cwd=self.folder, check=True,
                       timeout=120, stdout=subprocess.DEVNULL)
        return self.compare(folder)
