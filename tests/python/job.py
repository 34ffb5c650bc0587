"""A job of the installed wheel: its folder, its file, `muster run`. Not a test: the tests of this folder use it."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))
import processes  # noqa: E402

MUSTER = os.path.join(sysconfig.get_path("scripts"), "muster")
TRAINER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "trainer.py")
JOB = """apiVersion: muster/v1
kind: TrainingJob
metadata: {{name: python}}
spec:
  seed: 1
  partitions: 8
  stateDirectory: state
  datasets:
    - {{name: train, {train}, epochs: {epochs}, minibatchSize: 32, minibatchesPerShard: 4, shuffle: true}}
    - {{name: test, {test}, mode: evaluate, minibatchSize: 64}}
{predict}
  leases: {{failuresMax: {failures_max}}}
  servers: {{timeout: 60s}}
  restarts: {{crashLoopExits: 100, backoffInitial: 100ms, backoffMax: 500ms}}
{group}
  replicaSpecs:
    ps:     {{replicas: {servers}}}
    worker: {{replicas: {workers}, command: {command}}}
"""
PREDICT = """    - {{name: rows, records: {records}, mode: predict, output: rows, minibatchSize: 64}}
    - {{name: lines, records: 100, mode: predict, output: lines, minibatchSize: 8, minibatchesPerShard: 4}}"""
# A step is a shard of 4 minibatches. With fewer members, the group waits: who was killed has to copy the state.
GROUP = "  group: {{globalBatch: 128, minMembers: {members}, joinWait: 60s, silenceLimit: 30s, balance: false}}"


class Job:
    """In a folder of its own, with the data of `columns`: y = 2 a - 3 b + 1, and c is what a table of rows must learn.

    If the records are numbered, the job reads none of it. `predict` has further datasets, such as PREDICT."""

    def __init__(
        self, test, mode, *, trainer=TRAINER, members=0, workers=2, epochs=1, failures_max=3, records=640, numbered=False, predict=""
    ):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="muster-python-"))
        test.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.records = records
        for name, first, count in (("train-0.csv", 0, records // 2), ("train-1.csv", records // 2, records // 2), ("test.csv", 10**6, 64)):
            with open(self.path(name), "w", encoding="ascii") as file:
                print("a,b,c,y", file=file)
                for i in range(first, first + count):
                    a, b, c = i * 7 % 19 / 19, i * 5 % 23 / 23, i % 4
                    print(f"{a:.6f},{b:.6f},{c},{2 * a - 3 * b + 1 + c:.6f}", file=file)
        train, held_out = 'files: ["train-*.csv"], header: true', "files: [test.csv], header: true"
        if numbered:
            train, held_out = f"records: {records}", "records: 64"
        command = json.dumps([sys.executable, trainer, mode, self.folder])
        with open(self.path("job.yaml"), "w", encoding="ascii") as file:
            file.write(
                JOB.format(
                    train=train, test=held_out, predict=predict.format(records=records), epochs=epochs, failures_max=failures_max, workers=workers, command=command,
                    group=GROUP.format(members=members) if members else "", servers=0 if members else 1,
                )
            )
        with open(self.path("run.log"), "w", encoding="utf-8") as output:
            self.run = subprocess.Popen([MUSTER, "run", "job.yaml"], cwd=self.folder, stdout=output, stderr=subprocess.STDOUT)
        test.addCleanup(processes.stop_group, self.run)

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8", errors="replace") as file:
            return file.read()

    def log(self):
        """What everybody has printed."""
        texts = [self.read("run.log")]
        for folder, _, names in os.walk(self.path("state")):
            texts += [self.read(os.path.join(folder, name)) for name in sorted(names) if name.endswith(".log")]
        return "\n".join(texts)

    def wait(self, timeout=100):
        """The exit code of `muster run`."""
        return self.run.wait(timeout=timeout)

    def await_file(self, name):
        """Waits until a trainer has written the file, and returns its text."""
        deadline = time.monotonic() + 60
        while not os.path.exists(self.path(name)):
            if time.monotonic() > deadline or self.run.poll() is not None:
                raise AssertionError(f"{name} was not written\n{self.log()}")
            time.sleep(0.02)
        return self.read(name)

    def summary(self):
        return json.loads(self.read("state/summary.json"))

    def ask(self, *arguments):
        """What `muster` prints."""
        return subprocess.run([MUSTER, *arguments], cwd=self.folder, capture_output=True, text=True, check=True).stdout


def example(*names):
    """The path of a file of the examples in Python."""
    return os.path.join(ROOT, "examples", "python", *names)


class Example:
    """An example in Python, copied into a folder of its own, as its reader does."""

    def __init__(self, test, name, files):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix=f"muster-{name}-"))
        test.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        for file in files:
            shutil.copy(example(name, file), self.folder)

    def start(self, command, timeout=300):
        """Runs a command there, as in a shell where the environment is active, and returns what it prints. Raises if it fails."""
        environment = dict(os.environ, PATH=os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"])
        run = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=timeout, check=False)
        if run.returncode != 0:
            raise AssertionError(f"{command} has ended with {run.returncode}:\n{run.stdout}{run.stderr}")
        return run.stdout

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()

    def summary(self):
        return json.loads(self.read("state/summary.json"))
