#!/usr/bin/env python3
"""Bad input through the real binaries. Python's standard library only.

Each case must end with the documented exit code and a message that names the value, the place and what to do; and nothing
may be lost: when the cause is gone, a run on the same state directory commits every record, and the weights are
the closed form.
"""

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import closed_form  # noqa: E402
import processes  # noqa: E402

RECORDS = 1000
SUCCEEDED, FAILED, REFUSED = 0, 1, 2
JOB = """apiVersion: muster/v1
kind: TrainingJob
metadata: {name: bad-input}
spec:
  seed: 3
  partitions: 16
  stateDirectory: state
  snapshots: {interval: 300ms}
  datasets:
    - {name: numbers, files: ["numbers-*.txt"], epochs: 1, minibatchSize: 16, minibatchesPerShard: 4}
  leases: {duration: 3s, gracePeriod: 500ms, heartbeatInterval: 100ms}
  servers: {timeout: 3s, heartbeatInterval: 100ms}
  restarts: {crashLoopExits: 3, backoffInitial: 100ms, backoffMax: 300ms}
  replicaSpecs:
    ps:     {replicas: 2}
    worker: {replicas: 2, command: [TRAINER]}
"""
# 127.0.0.1, ::1 and ::ffff:127.0.0.1
LOOPBACK = {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}
TWO_EPOCHS = ("epochs: 1", "epochs: 2")
options = None


class BadInputTest(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="muster-bad-input-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.numbers = self.write("numbers-0.txt", "".join(f"{i}\n" for i in range(RECORDS)))
        self.environment = dict(os.environ)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def write_job(self, *changes):
        """The job with the changes (from, to); every `from` must be there."""
        text = JOB
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        return self.write("job.yaml", text.replace("TRAINER", json.dumps(options.trainer)))

    def command(self, *arguments):
        return [options.muster, *arguments]

    def start(self, *arguments):
        """`muster run job.yaml` in the background; its output is in run.log."""
        with open(self.path("run.log"), "w", encoding="utf-8") as log:
            run = subprocess.Popen(
                self.command("run", self.path("job.yaml"), *arguments),
                stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=self.folder, env=self.environment,
            )
        self.addCleanup(processes.stop_group, run)
        return run

    def said(self):
        with open(self.path("run.log"), encoding="utf-8") as log:
            return log.read()

    def wait_for(self, condition, run):
        end = time.monotonic() + 30
        while not condition():
            self.assertIsNone(run.poll(), f"the run ended with {run.poll()}:\n{self.said()}")
            self.assertLess(time.monotonic(), end, self.said())
            time.sleep(0.02)

    def run_job(self, code, *arguments):
        """Runs the job to its end; its exit code must be `code`. Returns all that it said."""
        run = self.start(*arguments)
        self.assertEqual(run.wait(timeout=40), code, self.said())
        return self.said()

    def refuse(self, *texts, code=REFUSED):
        said = self.run_job(code)
        for text in texts:
            self.assertIn(text, said)
        return said

    def summary(self):
        with open(self.path("state/summary.json"), encoding="utf-8") as file:
            return json.load(file)

    def finish(self, epochs, *arguments, numbers=None):
        """Runs the job without its fault: all is committed, and every weight is the closed form of `numbers`."""
        self.run_job(SUCCEEDED, *arguments)
        seen = self.summary()["datasets"][0]["epochs"]
        self.assertEqual([(e["records_expected"], e["records_committed"]) for e in seen], [(RECORDS, RECORDS)] * epochs)
        export = self.path("export")
        subprocess.run(self.command("export", self.path("job.yaml"), "--output-dir", export), check=True, timeout=40,
                       stdout=subprocess.DEVNULL)
        differences, _ = closed_form.compare([numbers or self.numbers], epochs, export)
        self.assertEqual(differences, [])

    def test_refused_before_anything_is_touched(self):
        """The state directory holds an epoch of training when the bad jobs come."""
        self.write_job()
        self.run_job(SUCCEEDED)
        os.mkdir(self.path("folder"))
        self.write("plain", "not a program\n")
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        taken = f"127.0.0.1:{listener.getsockname()[1]}"
        address = "seed: 3\n  master: {address: \"%s\"}"
        cases = {
            "unknown field": ([("epochs: 1", "epoch: 1")], ["job.yaml:10:", "unknown field 'epoch'", "did you mean 'epochs'?"]),
            "mistyped value": ([("seed: 3", "seed: three")], ["job.yaml:5:9:", "spec.seed", "'three' is not a whole number"]),
            "missing unit": ([("interval: 300ms", "interval: 300")], ["job.yaml:8:", "spec.snapshots.interval", "unit is missing"]),
            "no YAML": ([("  seed", "\tseed")], ["job.yaml:5:", "not valid YAML"]),
            "data missing": ([("numbers-*", "nmbers-*")], ["nmbers-*.txt", "no file matches", "correct spec.datasets[].files"]),
            "a folder as data": ([("numbers-*.txt", "folder")], [self.path("folder"), "write '%s/*'" % self.path("folder")]),
            "trainer missing": ([("TRAINER", "./trainr")], [self.path("trainr"), "does not exist", "Build it"]),
            "trainer not in PATH": ([("TRAINER", "trainr")], ["trainr", "is not in PATH", "write ./trainr"]),
            "trainer not executable": ([("TRAINER", "./plain")], ["chmod +x " + self.path("plain")]),
            "port taken": ([("seed: 3", address % taken)], [taken, "is taken", "choose another port"]),
            "any address": ([("seed: 3", address % "0.0.0.0:7070")], ["job.yaml:6:", "listens at every address (0.0.0.0)", "set spec.master.advertise"]),
            "another address": ([("seed: 3", address % "192.168.1.7:80")], ["spec.master.address", "192.168.1.7:80", "this machine does not have the address 192.168.1.7"]),
            "state below a file": ([("stateDirectory: state", "stateDirectory: plain/state")],
                                   ["spec.stateDirectory", self.path("plain/state"), "Not a directory", "choose one"]),
            "state in /proc": ([("stateDirectory: state", "stateDirectory: /proc/muster")], ["spec.stateDirectory", "/proc/muster", "choose one"]),
            "snapshots below a file": ([("interval: 300ms", "directory: plain/s")], ["spec.snapshots.directory", self.path("plain/s"), "choose one"]),
            "another job": ([("bad-input", "other")], [self.path("state"), "belongs to the job 'bad-input', not to 'other'", "Choose another"]),
            "another seed": ([("seed: 3", "seed: 4")], ["spec.seed: was 3, is now 4", "Choose another"]),
        }
        for what, (changes, texts) in cases.items():
            with self.subTest(what):
                self.write_job(*changes)
                self.refuse(*texts)
        self.write_job(TWO_EPOCHS)
        self.finish(2)

    def test_changed_data(self):
        self.write_job()
        self.run_job(SUCCEEDED)
        with open(self.numbers, "r+", encoding="utf-8") as file:
            before = file.read()
            file.write("1000\n")
        self.refuse(self.numbers, "has changed since the job began", "put it back", "another spec.stateDirectory")
        self.write("numbers-0.txt", before)
        self.write_job(TWO_EPOCHS)
        self.finish(2)

    def test_empty_data(self):
        self.write_job()
        self.write("numbers-0.txt", "")
        self.refuse("dataset numbers", "no record", self.numbers, "Put the data there")
        self.write_job(("epochs: 1", "epochs: 1, header: true"))
        self.write("numbers-0.txt", "number\n")
        self.refuse("dataset 'numbers'", "no record", "with header: true, the first line", "Put the data there")
        self.write_job()
        self.write("numbers-0.txt", "".join(f"{i}\n" for i in range(RECORDS)))
        self.finish(1)

    def test_unparsable_records(self):
        lines = [f"{i}\n" for i in range(RECORDS)]
        lines[6], lines[499] = "-1\n", "five hundred\n"
        self.write("numbers-0.txt", "".join(lines))
        self.write_job()
        said = self.refuse("rejectedRecordsMax is 0", "raise the limit", code=FAILED)
        self.assertRegex(self.summary()["reason"], re.escape(self.numbers) + ":(7|500): not a whole number")
        self.assertRegex(said, "record-rejected worker-[01]: " + re.escape(self.numbers))
        self.assertGreater(self.summary()["counters"]["rejected_records"], 0)
        self.write_job(TWO_EPOCHS, ("  leases:", "  training: {rejectedRecordsMax: 4}\n  leases:"))
        usable = self.write("usable.txt", "".join(line for line in lines if line.strip().isdigit()))
        self.finish(2, numbers=usable)
        self.assertEqual([e["rejected_records"] for e in self.summary()["datasets"][0]["epochs"]], [2, 2])

    def test_trainer_of_another_sdk_version(self):
        """The SDK's library with another version written into it: the same code otherwise."""
        with open(options.sdk, "rb") as file:
            library = file.read()
        version = subprocess.run(self.command("version"), capture_output=True, text=True, check=True).stdout.split()[1]
        ours = version.rpartition(".")[0]
        written = f"{version}\0".encode()
        self.assertIn(written, library, "the version is not in the library any more: adapt this test")
        library = library.replace(written, re.sub(rb"\d", b"9", written))
        os.mkdir(self.path("lib"))
        with open(self.path(f"lib/libmuster.so.{ours}"), "wb") as file:
            file.write(library)
        self.write_job(("[TRAINER]", "[TRAINER], env: {LD_LIBRARY_PATH: %s}" % self.path("lib")))
        self.refuse("the worker SDK of 'worker-", "has version '9.9', but the master has " + ours, "build both from the same release", code=FAILED)
        self.write_job()
        self.finish(1)

    def test_nan_gradients(self):
        self.write_job(("TRAINER", json.dumps(options.nan_trainer)), ("seed: 3", "seed: 3\n  training: {shardsAhead: 0}"))
        self.refuse('a gradient for table "wide" is nan (key 2, column 7, minibatch 0', "nothing of this minibatch was sent",
                    "division by zero", "muster run --retry-failed", code=FAILED)
        self.assertEqual(self.summary()["datasets"][0]["epochs"][0]["records_committed"], 0)
        self.write_job()
        self.finish(1, "--retry-failed")

    def test_infinite_weights(self):
        """The second epoch is never reached: without it, all shards might have failed before the bound is seen."""
        self.write_job(TWO_EPOCHS, ("[TRAINER]", "[%s], env: {GRADIENT: large}" % json.dumps(options.nan_trainer)),
                       ("seed: 3", "seed: 3\n  training: {failedShardsMax: 2}"))
        self.refuse("table 'wide': the row of key 2 has inf in column 7", "too many failures to continue", "muster run --retry-failed", code=FAILED)

    def fill_disk(self, folder):
        self.environment |= {"LD_PRELOAD": options.full_disk, "FULL_DISK_FLAG": self.path("full"),
                             "FULL_DISK_FOLDER": self.path(folder)}

    def test_disk_full_under_a_snapshot(self):
        """Training continues, but nothing is committed. When there is room again, the run continues by itself."""
        self.fill_disk("state/snapshots")
        self.write("full", "")
        self.write_job()
        run = self.start()
        self.wait_for(lambda: "snapshot-error" in self.said() and self.done() == RECORDS, run)
        self.assertRegex(self.said(), "snapshot-error ps-[01]: .*" + re.escape(self.path("state/snapshots")) + ".*No space left on device")
        self.assertIn("no shard is COMMITTED until this is fixed", self.said())
        os.unlink(self.path("full"))
        self.assertEqual(run.wait(timeout=40), SUCCEEDED, self.said())
        self.write_job(TWO_EPOCHS)
        self.finish(2)

    def done(self):
        status = subprocess.run(self.command("status", self.path("job.yaml"), "--output", "json"), capture_output=True, check=False)
        return json.loads(status.stdout)["datasets"][0]["epochs"][0]["records_done"] if status.returncode == 0 else 0

    def test_disk_full_under_the_journal(self):
        self.fill_disk("state/journal")
        self.write_job(TWO_EPOCHS, ("[TRAINER]", "[TRAINER, --slow-us, \"20000\"]"))
        run = self.start()
        self.wait_for(lambda: self.done() > 0, run)
        self.write("full", "")
        self.assertEqual(run.wait(timeout=40), FAILED, self.said())
        for text in (self.path("state/journal"), "the disk is full", "Nothing that was acknowledged is lost", "Free space and run again"):
            self.assertIn(text, self.said())
        os.unlink(self.path("full"))
        self.write_job(TWO_EPOCHS)
        self.finish(2)

    def test_nodes_refuse_other_addresses(self):
        job = self.write_job()
        run = subprocess.run(self.command("master", "--job", job, "--listen", "0.0.0.0:0", "--run-id", "x"),
                             capture_output=True, text=True, check=False, timeout=40)
        self.assertEqual(run.returncode, REFUSED, run.stderr)
        self.assertIn("'0.0.0.0:0' is not a loopback address", run.stderr)

    def listening(self, root):
        """Addresses on which `root` and the processes below it listen, as the kernel writes them."""
        inodes = set()
        for pid in processes.descendants(root) + [root]:
            inodes.update(link[8:-1] for link in open_files(pid) if link.startswith("socket:["))
        addresses = []
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            if not os.path.exists(table):
                continue
            with open(table, encoding="ascii") as file:
                rows = [line.split() for line in file.readlines()[1:]]
            addresses += [row[1].split(":")[0] for row in rows if row[3] == "0A" and row[9] in inodes]
        return addresses

    def test_everything_listens_on_loopback(self):
        self.write_job(("[TRAINER]", "[TRAINER, --slow-us, \"20000\"]"))
        run = self.start()
        self.wait_for(lambda: self.done() > 0, run)
        addresses = self.listening(run.pid)
        self.assertGreaterEqual(len(addresses), 3, "a master and two servers")
        self.assertEqual(set(addresses) - LOOPBACK, set())
        self.assertEqual(run.wait(timeout=40), SUCCEEDED, self.said())


def open_files(pid):
    """What each descriptor of `pid` refers to; those that close meanwhile are left out."""
    links = []
    try:
        for descriptor in os.listdir(f"/proc/{pid}/fd"):
            try:
                links.append(os.readlink(f"/proc/{pid}/fd/{descriptor}"))
            except OSError:
                continue
    except OSError:  # the process ended
        pass
    return links


def main():
    global options
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="Example: bad_input_test.py --build build/dev -k nan",
    )
    parser.add_argument("--build", required=True, help="build folder with the programs")
    options, rest = parser.parse_known_args()
    build = os.path.abspath(options.build)
    options.muster = os.path.join(build, "cli", "muster")
    options.trainer = os.path.join(build, "cli", "verify_worker")
    options.nan_trainer = os.path.join(build, "tests", "integration", "nan_trainer")
    options.full_disk = os.path.join(build, "tests", "integration", "libfull_disk.so")
    options.sdk = os.path.realpath(os.path.join(build, "worker_sdk", "libmuster.so"))
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
