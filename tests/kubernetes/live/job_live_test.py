#!/usr/bin/env python3
"""A whole job on a real control plane: its own pod is killed and deleted, a worker and a server die, and all is exact.

The counter job of tests/integration, made by `muster manifests`. Nothing may be started again that did not die, every record is
committed once, and every row is the closed form. Skipped, with the reason, where the control plane was not built.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "control_plane"))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))
import closed_form  # noqa: E402
import control_plane  # noqa: E402
import processes  # noqa: E402

JOB, RECORDS, EPOCHS = "counter", 21000, 2


def job_file(data):
    mounts = [{"name": "data", "mountPath": "/data"}]
    pod = {"spec": {"containers": [{"name": "muster", "volumeMounts": mounts}],
                    "volumes": [{"name": "data", "hostPath": {"path": data}}]}}
    trainer = ["/opt/trainer/verify_worker", "--slow-us", "20000", "--slow-while", "/data/slow"]
    return json.dumps({
        "apiVersion": "muster/v1", "kind": "TrainingJob", "metadata": {"name": JOB},
        "spec": {"seed": 5, "partitions": 64, "stateDirectory": "state", "snapshots": {"interval": "700ms"},
                 "datasets": [{"name": "numbers", "files": ["/data/numbers-*.txt"], "epochs": EPOCHS, "minibatchSize": 32,
                               "minibatchesPerShard": 4, "shuffle": True}],
                 "leases": {"duration": "60s", "heartbeatInterval": "100ms"}, "servers": {"timeout": "60s", "heartbeatInterval": "100ms"},
                 "restarts": {"crashLoopExits": 100, "backoffInitial": "100ms", "backoffMax": "500ms"},
                 "replicaSpecs": {"ps": {"replicas": 2}, "worker": {"replicas": 2, "command": trainer}},
                 "kubernetes": {"image": "muster:test", "podTemplates": {"all": pod}}}})


class Job:
    def __init__(self, plane, options, folder):
        self.plane, self.muster, self.folder = plane, options.muster, folder
        self.data = os.path.join(folder, "data")
        os.mkdir(self.data)
        os.chmod(self.data, 0o777)
        rng, self.paths = random.Random(5), []
        for part in range(3):
            self.paths.append(self.write(f"numbers-{part}.txt", [rng.randrange(RECORDS) for _ in range(RECORDS // 3)]))
        self.write("slow", [])
        self.file = os.path.join(folder, "job.yaml")
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(job_file(self.data))
        with open(os.path.join(plane.folder, "images.json"), "w", encoding="utf-8") as file:
            json.dump({"muster:test": {"mounts": {"/opt/muster": os.path.dirname(options.muster), "/opt/sdk": options.sdk,
                                                  "/opt/trainer": os.path.dirname(options.trainer)},
                                       "env": {"PATH": "/opt/muster:/usr/bin:/bin", "LD_LIBRARY_PATH": "/opt/sdk"}}}, file)

    def write(self, name, lines):
        path = os.path.join(self.data, name)
        with open(path, "w", encoding="ascii") as file:
            file.writelines(f"{line}\n" for line in lines)
        return path

    def kubectl(self, *words, given=None, check=True):
        return self.plane.kubectl(*words, text=given, check=check)

    def make(self):
        secrets = subprocess.run([self.muster, "manifests", self.file, "--secrets"], text=True, capture_output=True, check=True).stdout
        self.kubectl("create", "-f", "-", given=secrets)
        objects = subprocess.run([self.muster, "manifests", self.file], text=True, capture_output=True, check=True).stdout
        self.kubectl("apply", "-f", "-", given=objects)

    def pods(self, role=None):
        """{name: pod} of the job, without those that have ended."""
        labels = f"muster/job={JOB}" + (f",muster/role={role}" if role else "")
        pods = json.loads(self.kubectl("get", "pods", "-l", labels, "-o", "json"))["items"]
        return {pod["metadata"]["name"]: pod for pod in pods if pod["status"].get("phase") in ("Pending", "Running")}

    def nodes(self):
        """{name: UID} of the pods of workers and servers."""
        return {name: pod["metadata"]["uid"] for role in ("ps", "worker") for name, pod in self.pods(role).items()}

    def process(self, pod):
        """Process 1 of its first container, as a number of this machine."""
        for line in self.plane.fault("/pods").splitlines():
            name, _, pid = line.rsplit(" ", 2)
            if name == f"default/{pod}":
                return int(pid)
        raise AssertionError(f"no pod {pod}")

    def lines(self, pod):
        """The newest line of progress that the job's pod has printed."""
        said = [line for line in self.kubectl("logs", pod, check=False).splitlines() if line.startswith("[")]
        return said[-1] if said else None

    def wait(self, what, condition, seconds=120):
        end = time.monotonic() + seconds
        while not (value := condition()):
            if time.monotonic() > end:
                raise AssertionError(f"{what}: not within {seconds} s\n{self.kubectl('get', 'pods', '-o', 'wide', check=False)}\n"
                                     + "\n".join(self.kubectl("logs", pod, "--tail=30", check=False) for pod in self.pods()))
            time.sleep(0.3)
        return value

    def progressed(self, share):
        """Waits until that share of the records is done, as the newest pod of the job says."""
        def done():
            master = list(self.pods("master"))
            line = self.lines(master[0]) if master else None
            if line is None or " epoch " not in line:
                return False
            epoch = int(line.split(" epoch ")[1].split("/")[0])
            percent = float(line.split(f"/{EPOCHS} ")[1].split(" %")[0])
            return (epoch - 1) / EPOCHS + percent / 100 / EPOCHS >= share and line
        print(f"{share:.0%}: {self.wait(f'{share:.0%} of the records', done)}", flush=True)

    def conditions(self):
        job = json.loads(self.kubectl("get", "job", JOB, "-o", "json"))
        return {entry["type"] for entry in job["status"].get("conditions", []) if entry["status"] == "True"}

    def export(self, name):
        """The tables, as `muster export` brings them here. No pod of it may be left."""
        output = os.path.join(self.folder, name)
        command = [self.muster, "export", "--job", JOB, "--on", "kubernetes", "--namespace", "default", "--output-dir", output]
        done = subprocess.run(command, text=True, capture_output=True, check=False,
                              env={**os.environ, "KUBECONFIG": os.path.join(self.plane.folder, "admin.kubeconfig")})
        print(name, done.returncode, done.stdout.strip(), done.stderr.strip(), flush=True)
        assert done.returncode == 0, self.kubectl("describe", "pod", f"{JOB}-export", check=False)
        self.wait("the pod of the export is gone", lambda: not self.pods("export"), 30)
        return output


def run(job):
    job.make()
    job.progressed(0.1)
    first = job.nodes()
    assert sorted(first) == [f"{JOB}-ps-0-1", f"{JOB}-ps-1-1", f"{JOB}-worker-0-1", f"{JOB}-worker-1-1"], first
    print("the job's pod is killed", flush=True)
    os.kill(job.process(next(iter(job.pods("master")))), signal.SIGKILL)
    job.progressed(0.25)
    assert job.nodes() == first, f"{job.nodes()} instead of {first}"
    print("the job's pod is deleted, and ends within its grace", flush=True)
    old = next(iter(job.pods("master")))
    job.kubectl("delete", "pod", old, "--wait=true")
    job.progressed(0.4)
    assert job.nodes() == first, f"{job.nodes()} instead of {first}"
    print("a trainer dies below its `muster node`, and a server with its", flush=True)
    os.kill(processes.descendants(job.process(f"{JOB}-worker-0-1"))[0], signal.SIGKILL)
    os.kill(job.process(f"{JOB}-ps-1-1"), signal.SIGKILL)
    job.wait("both are started again", lambda: {f"{JOB}-worker-0-2", f"{JOB}-ps-1-2"} <= job.nodes().keys())
    assert first[f"{JOB}-ps-0-1"] == job.nodes()[f"{JOB}-ps-0-1"]
    job.progressed(0.5)
    assert os.path.exists(os.path.join(job.export("while-it-runs"), "SHA256SUMS"))
    os.remove(os.path.join(job.data, "slow"))
    ended = job.wait("the end of the Job", lambda: job.conditions() & {"Complete", "Failed"}, 180)
    pods = json.loads(job.kubectl("get", "pods", "-l", f"muster/job={JOB},muster/role=master", "-o", "json"))["items"]
    for pod in pods:
        for status in pod["status"].get("containerStatuses", []):
            print(pod["metadata"]["name"], status["state"].get("terminated", {}).get("exitCode"),
                  status["state"].get("terminated", {}).get("message", "").strip(), flush=True)
    assert "Complete" in ended, ended
    left = job.nodes()
    assert not left, f"pods are left: {left}"
    differences, compared = closed_form.compare(job.paths, EPOCHS, job.export("weights"))
    for line in differences[:10]:
        print(line[:300])
    print(f"{compared} rows compared, {len(differences)} differ", flush=True)
    assert not differences


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--muster", required=True, type=os.path.abspath)
    parser.add_argument("--trainer", required=True, type=os.path.abspath, help="the verify_worker executable")
    parser.add_argument("--sdk", required=True, type=os.path.abspath, help="the folder of libmuster.so")
    parser.add_argument("--folder", help="of a control plane that runs, and stays")
    options = parser.parse_args()
    try:
        control_plane.find()
    except control_plane.Missing as missing:
        print(f"{missing}\nskipped=1")
        return 0
    if os.geteuid() != 0:
        print("the stand-in kubelet mounts volumes, so it needs root\nskipped=1")
        return 0
    if options.folder:
        with tempfile.TemporaryDirectory(prefix="muster-kubernetes-") as folder:
            os.chmod(folder, 0o755)
            run(Job(control_plane.ControlPlane(options.folder), options, folder))
        return 0
    with tempfile.TemporaryDirectory(prefix="muster-kubernetes-") as folder:
        os.chmod(folder, 0o755)
        with control_plane.ControlPlane(os.path.join(folder, "plane")) as plane:
            run(Job(plane, options, folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
