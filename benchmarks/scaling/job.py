"""A job in a folder of its own, run by the real `muster run`, watched from outside: REST, /proc, exits of processes."""

import http.client
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))
import closed_form  # noqa: E402
import processes  # noqa: E402

NUMBERS_TRAINER, FLIGHTS_TRAINER = "verify_worker", "flights_trainer"


class Failed(Exception):
    """The measurement could not be finished; the text says why and where to look."""


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def in_folder(name, what, keep, work):
    """The exit code of `work(folder)`, or 3 when that Failed, or 130 when it was interrupted. The folder is removed afterwards: not with
    `keep`, nor after a failure, 1 or 3."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    folder, code = os.path.realpath(tempfile.mkdtemp(prefix=f"muster-{what}-")), 3
    try:
        code = work(folder)
    except Failed as error:
        print(f"{name}: {error}", file=sys.stderr)
    except (KeyboardInterrupt, SystemExit):
        code = 130
    finally:
        if keep or code in (1, 3):
            say(f"kept {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return code


class Rest:
    """The REST interface of a job. None if there is no answer. For one thread."""

    def __init__(self, state):
        self.state = state
        self.connection = self.port = None

    def ask(self, method, path, body=None):
        try:
            with open(os.path.join(self.state, "run", "rest.json"), encoding="utf-8") as file:
                port = json.load(file)["port"]
            if port != self.port or self.connection is None:
                self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                self.port = port
            with open(os.path.join(self.state, "scaler", "token"), encoding="utf-8") as file:
                headers = {"Authorization": "Bearer " + file.read().strip(), "Content-Type": "application/json"}
            self.connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, ValueError, KeyError, http.client.HTTPException):
            if self.connection is not None:
                self.connection.close()
            self.connection = None
            return None
        if answer.status >= 500 or answer.status == 429:
            return None
        if answer.status >= 400:
            raise Failed(f"{method} {path}: {answer.status} {text.decode(errors='replace')}")
        return json.loads(text)

    def get(self, path):
        return self.ask("GET", "/api/v1/" + path)

    def post(self, path, body):
        return self.ask("POST", "/api/v1/" + path, body)


class ExitWatch:
    """When processes ended, to the millisecond: (pid, time.monotonic() of its end)."""

    def __init__(self):
        self.ended = {}
        self._known = set()
        self._poll = select.poll()
        self._fds = {}
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def add(self, pids):
        with self._lock:
            for pid in pids:
                if pid not in self._known:
                    self._known.add(pid)
                    try:
                        fd = os.pidfd_open(pid)
                    except OSError:
                        continue
                    self._fds[fd] = pid
                    self._poll.register(fd, select.POLLIN)

    def _run(self):
        while not self._stop.is_set():
            for fd, _ in self._poll.poll(20):
                now = time.monotonic()
                with self._lock:
                    self._poll.unregister(fd)
                    self.ended[self._fds.pop(fd)] = now
                os.close(fd)

    def close(self):
        self._stop.set()
        self._thread.join()
        for fd in self._fds:
            os.close(fd)


class Job:
    """`with Job(...)`: started, and ended on leaving, whatever happens. `spec` is the job file's, without what all jobs have."""

    def __init__(self, options, folder, spec, trainer=NUMBERS_TRAINER):
        self.options, self.folder, self.trainer = options, folder, trainer
        self.muster = os.path.join(options.build, "cli", "muster")
        self.state = os.path.join(folder, "state")
        self.job_file = os.path.join(folder, "job.yaml")
        self.rest = Rest(self.state)
        self.exits = ExitWatch()
        self.run = self.began = None
        os.makedirs(folder, exist_ok=True)
        self.write(spec)

    def write(self, spec):
        document = {"apiVersion": "muster/v1", "kind": "TrainingJob", "metadata": {"name": "scaling"}, "spec": spec}
        with open(self.job_file, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)  # JSON is YAML

    def __enter__(self):
        with open(os.path.join(self.folder, "run.log"), "a", encoding="utf-8") as output:
            self.run = subprocess.Popen([self.muster, "run", "job.yaml", "--no-progress"], cwd=self.folder,
                                        stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                        start_new_session=True)
        self.began = time.monotonic()
        return self

    def __exit__(self, *_):
        # The second one stops everything at once; only who is asked removes its control groups.
        for _ in range(2):
            if self.run.poll() is None:
                self.run.send_signal(signal.SIGINT)
                time.sleep(0.3)
        try:
            self.run.wait(timeout=10)
        except subprocess.TimeoutExpired:
            processes.stop_group(self.run)
        left = processes.wait_none_under(self.folder, 10)
        for pid in left:
            processes.send(pid, signal.SIGKILL)
        self.exits.close()
        if left:
            say(f"{len(left)} processes outlived the run in {self.folder}, and were killed: a defect")

    def wait(self, what, condition, seconds=120, pause=0.02):
        """The first true value of `condition`."""
        end = time.monotonic() + seconds
        while not (value := condition()):
            if self.run.poll() is not None:
                raise Failed(f"the run ended with code {self.run.returncode} while waiting for {what}: {self.folder}/run.log")
            if time.monotonic() > end:
                raise Failed(f"no {what} after {seconds} s: {self.folder}/run.log")
            time.sleep(pause)
        return value

    def nodes(self):
        """{name: node} as REST has them; None if there is no answer."""
        answer = self.rest.get("nodes")
        if answer is None:
            return None
        nodes = {node["name"]: node for node in answer["nodes"]}
        self.exits.add(node["pid"] for node in nodes.values() if node["pid"] and node["state"] in ("starting", "running"))
        return nodes

    def node(self, name):
        return (self.nodes() or {}).get(name)

    def wait_training(self, seconds=120):
        """Every worker has finished a minibatch."""
        def all_train():
            workers = [n for n in (self.nodes() or {}).values() if n["role"] == "worker"]
            return workers and all(n["worker"] and n["worker"]["times"]["minibatches_finished"] > 0 for n in workers)
        self.wait("training of all workers", all_train, seconds, 0.2)

    def progress(self):
        """Training records that are done, as REST shows them, once a second: cheap to ask. 0 if there is no answer."""
        answer = self.rest.get("job")
        return answer["progress"]["records_done"] if answer else 0

    def done(self):
        """Training records that are done this moment; None while the master cannot be asked."""
        status = self.say("status")
        try:
            return sum(epoch["records_done"] for dataset in json.loads(status)["datasets"] if dataset["mode"] == "train"
                       for epoch in dataset["epochs"])
        except (ValueError, KeyError):
            return None

    def say(self, verb, *arguments, output="json"):
        """What a verb of `muster` prints, also after the run."""
        return subprocess.run([self.muster, verb, "job.yaml", "--output", output, *arguments], cwd=self.folder, text=True,
                              capture_output=True, timeout=120, check=False).stdout

    def events(self):
        """The scaler's events, from its log on disk: also after the run."""
        found = [json.loads(line) for line in self.say("events").splitlines()]
        return [event["event"] | {"time": event["time"]} for event in found if event["source"] == "scaler"]

    def printed_events(self):
        """As `muster events` prints them: what the scaler decided, did and saw, all but the orderly ends."""
        lines = self.say("events", output="text").splitlines()
        return [line for line in lines if "  #" in line and not line.endswith("(exit 0)")]

    def finish(self, seconds):
        """Waits for the end; the summary. Anything but success is a failure."""
        end = time.monotonic() + seconds
        while self.run.poll() is None and time.monotonic() < end:
            self.nodes()
            try:
                self.run.wait(timeout=1)
            except subprocess.TimeoutExpired:
                pass
        if self.run.poll() is None:
            raise Failed(f"the job did not end within {seconds:.0f} s: {self.folder}/run.log")
        summary = self.summary()
        summary["wall_seconds"] = time.monotonic() - self.began
        if self.run.returncode != 0:
            raise Failed(f"the run ended with code {self.run.returncode} ({summary.get('reason')}): {self.folder}/run.log")
        return summary

    def summary(self):
        try:
            with open(os.path.join(self.state, "summary.json"), encoding="utf-8") as file:
                return json.load(file)
        except OSError:
            return {}


def counts(summary):
    """(committed, expected) records of all datasets and epochs; equal when nothing is lost or doubled."""
    epochs = [epoch for dataset in summary["datasets"] for epoch in dataset["epochs"]]
    return sum(epoch["records_committed"] for epoch in epochs), sum(epoch["records_expected"] for epoch in epochs)


def require_exact(summary):
    committed, expected = counts(summary)
    if committed != expected:
        raise Failed(f"{committed} records are committed, {expected} were expected")
    return committed


class Numbers:
    """Data and spec of the job whose result is known beforehand (verify/README.md)."""

    trainer = NUMBERS_TRAINER

    def __init__(self, options, folder, records):
        self.records, self.folder = records, folder
        self.worker = os.path.join(options.build, "cli", NUMBERS_TRAINER)
        os.makedirs(folder, exist_ok=True)
        self.path = os.path.join(folder, "numbers.txt")
        if not os.path.exists(self.path):
            with open(self.path, "w", encoding="ascii") as file:
                file.writelines(f"{number}\n" for number in range(records))

    def spec(self, *, epochs=1, slow_us=0, minibatch=64, per_shard=8, history=None, wrap=(), **parts):
        command = [*wrap, self.worker, "--slow-us", str(slow_us)]
        if history:
            os.makedirs(history, exist_ok=True)
            command += ["--history", history]
        dataset = {"name": "numbers", "files": [self.path], "epochs": epochs, "minibatchSize": minibatch,
                   "minibatchesPerShard": per_shard, "shuffle": True}
        return spec_of([dataset], command, **parts)

    def wrong_rows(self, job, epochs):
        """Rows of the exported tables that are not the closed form."""
        export = os.path.join(job.folder, "export")
        shutil.rmtree(export, ignore_errors=True)
        job.say("export", "--output-dir", export)
        differences, compared = closed_form.compare([self.path], epochs, export)
        if compared == 0:
            raise Failed(f"nothing was exported into {export}")
        return len(differences)


class Flights:
    """Data and spec of examples/flights; a part of its records for a quick look."""

    trainer = FLIGHTS_TRAINER

    def __init__(self, options, folder, records=0):
        self.worker = os.path.join(options.build, "examples", "flights", FLIGHTS_TRAINER)
        say("unpacking the flights ...")
        subprocess.run([os.path.join(ROOT, "examples", "flights", "prepare_data"), folder], check=True, stdout=sys.stderr)
        self.path = os.path.join(folder, "train.csv")
        if records:
            with open(self.path, encoding="utf-8") as file:
                lines = file.readlines()[:records + 1]
            self.path = os.path.join(folder, "few.csv")
            with open(self.path, "w", encoding="utf-8") as file:
                file.writelines(lines)
        with open(self.path, encoding="utf-8") as file:
            self.records = sum(1 for _ in file) - 1

    def spec(self, *, epochs=1, per_shard=8, wrap=(), **parts):
        dataset = {"name": "train", "files": [self.path], "header": True, "epochs": epochs, "minibatchSize": 256,
                   "minibatchesPerShard": per_shard, "shuffle": True}
        return spec_of([dataset], [*wrap, self.worker], **parts) | {
            "seed": 7, "training": {"unacknowledgedMinibatchesMax": 2, "prefetchMinibatches": 1}}


def spec_of(datasets, command, *, workers=2, servers=2, worker=None, server=None, snapshots="2s", **more):
    """`worker`, `server`: fields of `resources`; None names none."""
    roles = {"ps": {"replicas": servers}, "worker": {"replicas": workers, "command": command}}
    for role, resources in (("ps", server), ("worker", worker)):
        if resources is not None:
            roles[role]["resources"] = resources
    return {"stateDirectory": "state", "snapshots": {"interval": snapshots}, "datasets": datasets, "replicaSpecs": roles} | more
