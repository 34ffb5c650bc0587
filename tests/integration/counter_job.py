"""The counter job run by the real binaries: its data, its file, `muster run`, and what must be true of the result.

Not a test: most tests of this folder use it. What is wrong is raised as an AssertionError.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import closed_form  # noqa: E402
import processes  # noqa: E402

LEASE_SECONDS = 1.5
MINIBATCH = 32
# What is left of a job shall last so long, however slow the machine makes the test, and a minibatch at most so long.
REST_SECONDS, PACE_MAX_SECONDS = 60, 1
# While this file is in the job's folder its minibatches take longer.
SLOW = "slow"
# Numbers of records to evaluate begin here: no record to train has one of them, and none of their rows may come to exist.
EVALUATE_FIRST = 900_000_000
HEADER = "number"
JOB = """apiVersion: muster/v1
kind: TrainingJob
metadata: {{name: closed-form}}
spec:
  seed: {seed}
  partitions: {partitions}
  stateDirectory: {state}
  snapshots: {snapshots}
  datasets:
    - {{name: numbers, {source}, epochs: {epochs}, minibatchSize: {minibatch}, minibatchesPerShard: 4, shuffle: true}}
{evaluate}
  training: {training}
  leases: {{duration: {silence}, gracePeriod: 1s, heartbeatInterval: 100ms, failuresMax: {failures_max}}}
  servers: {{timeout: {silence}, heartbeatInterval: 100ms}}
  restarts: {{crashLoopExits: 100, backoffInitial: 100ms, backoffMax: 500ms}}
  replicaSpecs:
    ps:     {ps}
    worker: {worker}
{more}
"""
EVALUATE = """    - {name: unseen, files: ["unseen-*.txt"], mode: evaluate, header: true, minibatchSize: 16, minibatchesPerShard: 2}"""


def add_arguments(parser):
    """Where the programs are."""
    parser.add_argument("--muster", required=True, type=os.path.abspath, help="the muster executable")
    parser.add_argument("--trainer", required=True, type=os.path.abspath, help="the verify_worker executable")


def arguments(description, example):
    """The options of a test that needs only the programs, and the rest for unittest."""
    parser = argparse.ArgumentParser(
        description=description.splitlines()[0],
        epilog=f"Example: {example} --muster build/dev/cli/muster --trainer build/dev/cli/verify_worker",
    )
    add_arguments(parser)
    return parser.parse_known_args()


class CounterJob:
    """A job in a folder of its own. Every run of it must be waited for or killed; `with` kills what a failed test left
    and removes the folder unless something was raised."""

    def __init__(self, options, *, seed=1, records, epochs=3, evaluate_records=0, slow_us=20000, threads=1,
                 encoding="float32", partitions=64, environment=None, worker_environment=None, numbered=False):
        self.muster, self.trainer = options.muster, options.trainer
        self.seed, self.records, self.epochs, self.evaluate_records = seed, records, epochs, evaluate_records
        self.encoding, self.partitions = encoding, partitions
        # The records are numbers, and not lines of files.
        self.numbered = numbered
        self.slow_us = slow_us
        self.command = [self.trainer, "--slow-us", str(slow_us), "--slow-while", SLOW, "--threads", str(threads)]
        self.state, self.start_export, self.paths = "state", None, []
        # Of `muster run` and what it starts, and of trainers, on top of this process's own.
        self.environment, self.worker_environment = environment or {}, worker_environment or {}
        # After so long a node is taken for lost: "60s" where that must not happen, however slow the machine is.
        self.silence = f"{LEASE_SECONDS * 1000:.0f}ms"
        # Of the trainer, after which a shard is FAILED.
        self.failures_max = 3
        # What else the job file says of servers, of workers, of the training, and in `spec`.
        self.ps, self.worker, self.training, self.spec = {}, {}, {}, {}
        self.snapshots = {"interval": "700ms"}
        # What `muster run` is run by.
        self.wrapper = []
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="muster-closed-form-"))
        self.runs = []
        self._write(SLOW, [])
        print(f"folder {self.folder}, seed {seed}", flush=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for run in self.runs:
            processes.stop_group(run)
        if kind is None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write_data(self, rng, first=0):
        """Four files of different lengths; some numbers occur more than once, so that hot rows exist. Two to evaluate.

        If the records are numbered, the job does not read the four files, but the checks do."""
        cuts = sorted(rng.sample(range(1, self.records), 3))
        numbers = range(self.records)
        if not self.numbered:
            numbers = [first + (i if i % 10 else rng.randrange(self.records)) for i in numbers]
        self.paths = []
        for i, (begin, end) in enumerate(zip([0] + cuts, cuts + [self.records])):
            self.paths.append(self._write(f"numbers-{i}.txt", numbers[begin:end]))
        half = self.evaluate_records // 2
        for i, (begin, end) in enumerate([(0, half), (half, self.evaluate_records)] if half else []):
            self._write(f"unseen-{i}.txt", [HEADER, *range(EVALUATE_FIRST + begin, EVALUATE_FIRST + end)])

    def _write(self, name, lines):
        with open(self.path(name), "w", encoding="ascii") as file:
            file.writelines(f"{line}\n" for line in lines)
        return self.path(name)

    def write_job(self):
        worker = {"replicas": 2, "command": self.command, "env": self.worker_environment} | self.worker
        with open(self.path("job.yaml"), "w", encoding="utf-8") as file:
            file.write(JOB.format(seed=self.seed, partitions=self.partitions, minibatch=MINIBATCH, state=self.state, epochs=self.epochs,
                                  source=f"records: {self.records}" if self.numbered else 'files: ["numbers-*.txt"]',
                                  evaluate=EVALUATE if self.evaluate_records else "",
                                  training=json.dumps({"wireEncoding": self.encoding} | self.training),
                                  silence=self.silence, failures_max=self.failures_max,
                                  snapshots=json.dumps(self.snapshots), ps=json.dumps({"replicas": 2} | self.ps), worker=json.dumps(worker),
                                  more="\n".join(f"  {name}: {json.dumps(value)}" for name, value in self.spec.items())))

    def begin(self, share):
        """Writes the data and the job, and starts it; the run, once that share of all training records is done."""
        self.write_data(random.Random(self.seed))
        self.write_job()
        run = self.start()
        self.wait_progress(run, share)
        return run

    def finish(self, run):
        """The run ends at full speed, with every record once and exact weights; its summary."""
        self.hurry()
        self.wait(run, 0)
        summary = self.require_complete()
        self.require_closed_form()
        return summary

    def hurry(self):
        """From now on the job runs at full speed: a test ends it when it has seen enough, not when the machine is done."""
        os.remove(self.path(SLOW))

    def linger(self, done):
        """The job becomes so slow that it does not end while the test still acts; `done` records are done. A job that is
        not slow at all stays so."""
        left = max(1, self.records * self.epochs - done) / MINIBATCH
        seconds = min(PACE_MAX_SECONDS, REST_SECONDS * self.worker.get("replicas", 2) / left)
        self._set_pace(max(self.slow_us, int(seconds * 1e6)))

    def _set_pace(self, microseconds):
        if self.slow_us > 0 and os.path.exists(self.path(SLOW)):
            self._write(SLOW, [microseconds])

    def start(self, *arguments):
        """`muster run` in the background; what all runs say is in run.log."""
        with open(self.path("run.log"), "a", encoding="utf-8") as output:
            run = subprocess.Popen([*self.wrapper, self.muster, "run", "job.yaml", *arguments], cwd=self.folder,
                                   stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   env=os.environ | self.environment)
        self.runs.append(run)
        return run

    def said(self):
        """What all runs said, the newest last."""
        with open(self.path("run.log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def last_words(self):
        return "".join(self.said().splitlines(keepends=True)[-40:])

    def wait(self, run, code, seconds=240):
        """The run ends with that exit code, and none of its processes outlives it."""
        try:
            ended = run.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"muster run did not end within {seconds} s\n{self.last_words()}") from None
        self.require_nothing_left()
        if ended != code:
            raise AssertionError(f"muster run ended with {ended}, not with {code}\n{self.last_words()}")

    def kill(self, run):
        """SIGKILL to `muster run` itself; everything else must die with it."""
        run.send_signal(signal.SIGKILL)
        run.wait()
        self.require_nothing_left()

    def require_nothing_left(self):
        if left := processes.wait_none_under(self.folder, 10):
            raise AssertionError(f"processes outlived the run: {[(pid, processes.command_line(pid)) for pid in left]}")

    def ask(self, *arguments):
        """An order to the running job, which must be taken."""
        subprocess.run([self.muster, *arguments], cwd=self.folder, check=True, timeout=60, stdout=subprocess.DEVNULL,
                       env=os.environ | self.environment)

    def status(self):
        """The output of `muster status`; None while the master does not answer."""
        result = subprocess.run([self.muster, "status", "job.yaml", "--output", "json"], cwd=self.folder, text=True,
                                capture_output=True, check=False)
        return json.loads(result.stdout) if result.returncode == 0 else None

    def progress(self):
        """(records done, records committed) of the training epochs; None while the master cannot be asked."""
        if (status := self.status()) is None:
            return None
        epochs = [e for dataset in status["datasets"] if dataset["mode"] == "train" for e in dataset["epochs"]]
        return sum(e["records_done"] for e in epochs), sum(e["records_committed"] for e in epochs)

    def wait_progress(self, run, share, committed=0):
        """Waits until that share of all training records is done; the records committed then, never less than `committed`:
        what is final stays so, whatever dies. The job goes slowly on (`linger`) until it is waited for again."""
        self._set_pace(self.slow_us)
        end = time.monotonic() + 60
        while True:
            if run.poll() is not None:
                raise AssertionError(f"the run ended with {run.poll()} before {share:.0%} was done\n{self.last_words()}")
            if (seen := self.progress()) is not None:
                if seen[1] < committed:
                    raise AssertionError(f"{seen[1]} records are committed, {committed} were before")
                if seen[0] >= share * self.records * self.epochs:
                    self.linger(seen[0])
                    return seen[1]
            if time.monotonic() > end:
                raise AssertionError(f"progress is {seen}, {share:.0%} was not done within 60 s\n{self.last_words()}")
            time.sleep(0.02)

    def wait_for(self, run, what, condition, seconds=60):
        """What `condition` returns, once it is something; the run must not end before."""
        end = time.monotonic() + seconds
        while not (found := condition()):
            if run.poll() is not None:
                raise AssertionError(f"the run ended with {run.poll()} while waiting: {what}\n{self.last_words()}")
            if time.monotonic() > end:
                raise AssertionError(f"no result of the wait for: {what}\n{self.last_words()}")
            time.sleep(0.02)
        return found

    def summary(self):
        with open(self.path(self.state, "summary.json"), encoding="utf-8") as file:
            return json.load(file)

    def require_complete(self):
        """Every record of every epoch is committed once, and the metrics are what they are known to be."""
        summary = self.summary()
        if summary["state"] != "succeeded":
            raise AssertionError(f"the job ended as {summary['state']}: {summary['reason']}")
        numbers = closed_form.read_ids(self.paths)
        known = {"numbers": {"id": sum(n * times for n, times in numbers.items()) / self.records}}
        counts = {"numbers": self.records}
        if self.evaluate_records:
            known["unseen"] = {"id": EVALUATE_FIRST + (self.evaluate_records - 1) / 2, "ids_row": 0.0}
            counts["unseen"] = self.evaluate_records
        expected = [(name, epoch, counts[name], counts[name], known[name]) for name in counts for epoch in range(self.epochs)]
        seen = [(dataset["name"], epoch["epoch"], epoch["records_expected"], epoch["records_committed"], epoch["metrics"])
                for dataset in summary["datasets"] for epoch in dataset["epochs"]]
        if seen != expected:
            raise AssertionError("the summary (dataset, epoch, expected, committed, metrics) is\n"
                                 + "\n".join(map(str, seen)) + "\nbut should be\n" + "\n".join(map(str, expected)))
        return summary

    def differences(self, folder="export"):
        """Exports the tables into `folder` and compares them with the closed form: lines of text, none when all is right."""
        self.ask("export", "job.yaml", "--output-dir", folder)
        return self.compare(folder)

    def compare(self, folder):
        """Compares an existing export with the closed form; as above."""
        differences, compared = closed_form.compare(self.paths, self.epochs, self.path(folder), self.start_export)
        for line in differences[:10]:
            print(line[:300])
        print(f"{compared} rows compared, {len(differences)} differ", flush=True)
        return differences

    def require_closed_form(self, folder="export"):
        if differences := self.differences(folder):
            raise AssertionError(f"{len(differences)} rows are not the closed form; the run is in {self.folder}")
