#!/usr/bin/env python3
"""A process dies at every failpoint that there is, once; fails at every one that can; lingers at each; at those of the memory that
workers and servers share it is stopped, too (SIGSTOP, for longer than a lease or less): exact weights at the end.

The programs themselves say which failpoints they have. Each acts once among all processes of a job: the process that takes
its place passes by. A failpoint that no process reaches fails the test. The tests `first` act as soon as a process reaches it; what
lies on the way of every done and every snapshot acts once more in the tests `later`, in the middle of the work of a process.
Python's standard library only.
"""

import os
import random
import signal
import subprocess
import sys
import time
import unittest

import counter_job
from counter_job import processes

# Passed when the job, or an epoch, is over; all others while it trains.
AT_THE_END = ("evaluate.", "summary.")
EXPORT = "export."
# Passed when a server has died that had snapshots: where none dies by itself, one is killed.
RESTORE = ("own.", "restore.")
# Passed when a trainer has crashed, which it does not by SIGKILL: where none does, one is given SIGSEGV.
FAILURE = "failure."
# Passed when the step before has failed: only where that is made to fail.
AFTER_ERROR = {"snapshot.before-remove": "snapshot.before-rename", "snapshot.before-withdraw": "snapshot.after-folder-sync"}
# Passed over and over by every process.
LATER = ("accepted.", "answer.", "commit.", "done.", "exchange.", "forget.", "journal.after-write", "journal.before-mark",
         "journal.before-write", "manifest.", "push.", "report.", "request.", "ring.", "slot.after-", "snapshot.")
# Steps of the memory that a worker and a server share. Both programs have those of its rings.
RINGS = ("ring.", "rings.")
# A ring that is full, which it never is with such small minibatches: tests/net/ring_failpoints_test.cc fills it.
# Members of a synchronous group have theirs: groups/group_test.py trains one.
ELSEWHERE = ("ring.writer-sleeps", "group.")
# Trainers make rings only for each other, in a synchronous group: this job has none.
OF_GROUPS = ("rings.before-make", "rings.before-hand-over", "rings.after-hand-over")
# Trainers open the rings that servers make. `muster` has the code, too, and never runs it.
OF_TRAINERS = ("rings.before-open", "rings.after-open")
# Trainers write files, and objects of the store, only for a synchronous group.
FILES_AND_STORE = ("file.", "snapshot.", "owner.")
# With the whole machine to itself a run needs a fifth of it.
SECONDS = 200
PROGRAMS = ("muster", "trainer")
RECORDS = 60000
options = None


def names_of(program):
    """{name: whether it can return an error} of the failpoints of a program."""
    environment = os.environ | {"MUSTER_FAILPOINTS": "list", "MUSTER_MASTER": "127.0.0.1:1", "MUSTER_NODE": "none"}
    listed = subprocess.run([program], env=environment, check=True, capture_output=True, text=True, timeout=60).stdout
    names = {line.split()[0]: line.endswith(" error") for line in listed.splitlines()}
    return {name: errors for name, errors in names.items() if not name.startswith(ELSEWHERE)}


def arm(names, action_of):
    return ";".join(f"{name}={action_of(name)}" for name in sorted(names))


class FailpointTest(unittest.TestCase):
    def setUp(self):
        self.muster, self.trainer = names_of(options.muster), names_of(options.trainer)
        self.trainer = {name: errors for name, errors in self.trainer.items() if name not in OF_GROUPS}
        self.assertGreaterEqual(len(self.muster | self.trainer), 40)
        self.pauses = random.Random(1)

    def environment(self, job, program, names, action_of):
        """Each name acts once in all processes of a program, "muster" or "trainer"."""
        return {
            "MUSTER_FAILPOINTS": arm(names, action_of),
            "MUSTER_FAILPOINTS_ONCE": job.path("acted-" + program),
            "MUSTER_FAILPOINTS_REACHED": job.path("reached-" + program),
        }

    def acted(self, job):
        """{(program, name)} of those that have acted."""
        return {(program, name) for program in PROGRAMS for name in os.listdir(job.path("acted-" + program))}

    def reached(self, job):
        """As acted(): the failpoints that a process has reached."""
        reached = set()
        for program in PROGRAMS:
            if os.path.exists(job.path("reached-" + program)):
                with open(job.path("reached-" + program), encoding="ascii") as file:
                    reached |= {(program, name) for name in file.read().split()}
        return reached

    def leave_an_orphan(self, job):
        """A file of a snapshot that no manifest names: a new run deletes it."""
        os.makedirs(job.path("state", "snapshots", "p00000"), exist_ok=True)
        with open(job.path("state", "snapshots", "p00000", "e1-s1.1.tmp"), "wb"):
            pass

    def help(self, missing, nodes):
        """What some failpoints wait for and may not come by itself."""
        if any(name.startswith(RESTORE) for _, name in missing):
            for pid in nodes["ps"][:1]:
                processes.send(pid, signal.SIGKILL)
        if any(name.startswith(FAILURE) for _, name in missing):
            for pid in nodes["worker"][:1]:
                processes.send(pid, signal.SIGSEGV)

    def let_go_on(self, nodes, continue_at):
        """Processes that have stopped themselves, after a while that no lease or one lease outlives. `continue_at`: {pid: when}."""
        for pid in (pid for role in ("ps", "worker") for pid in nodes[role]):
            if not processes.paused(pid):
                continue_at.pop(pid, None)
                continue
            until = continue_at.setdefault(pid, time.monotonic() + self.pauses.choice((0.2, 1.5 * counter_job.LEASE_SECONDS)))
            if time.monotonic() > until:
                processes.send(pid, signal.SIGCONT)

    def train(self, job, names):
        """Runs the job, again when `muster run` itself was hit, until every failpoint has acted and the job has succeeded.

        `names` are (program, name)."""
        acted = set()
        continue_at = {}
        end = time.monotonic() + SECONDS
        kill_at = time.monotonic() + 3
        while True:
            self.leave_an_orphan(job)
            run = job.start()
            while run.poll() is None:
                acted = self.acted(job)
                missing = [(program, name) for program, name in names - acted if not name.startswith(AT_THE_END)]
                nodes = processes.nodes(run.pid, os.path.basename(job.trainer))
                self.let_go_on(nodes, continue_at)
                if not missing and os.path.exists(job.path(counter_job.SLOW)):
                    print(f"{len(acted)} of {len(names)} have acted, {SECONDS - end + time.monotonic():.0f} s", flush=True)
                    job.hurry()
                if missing and time.monotonic() > kill_at:
                    kill_at += 3
                    self.help(missing, nodes)
                self.assertLess(time.monotonic(), end, f"not reached in {SECONDS} s: {missing}\n{job.last_words()}")
                time.sleep(0.05)
            code = run.returncode
            job.wait(run, code)
            acted = self.acted(job)
            if code == 0 and os.path.exists(job.path("state", "summary.json")):
                break
            hit = code == -9 or "injected at failpoint" in job.last_words()
            self.assertTrue(hit, f"`muster run` ended with {code}, and not by a failpoint\n{job.last_words()}")
        # The last one may have hit the last run.
        self.assertEqual(names - acted, set(), "not reached before the job was over: give it more records")

    def run_with(self, action_of, seed, chosen):
        """A job with every chosen failpoint armed (by name, and if it returns errors); its weights must be exact."""
        with counter_job.CounterJob(options, seed=seed, records=RECORDS, epochs=3, evaluate_records=600,
                                    slow_us=20000) as job:
            for program in PROGRAMS:
                os.mkdir(job.path("acted-" + program))
            armed = {name for name, errors in self.muster.items() if chosen(name, errors) and not name.startswith((EXPORT, *OF_TRAINERS))}
            both = {name for name in self.trainer.keys() & self.muster.keys() if not name.startswith((*FILES_AND_STORE, *OF_TRAINERS, "ring."))}
            self.assertEqual(both, set(), "a failpoint has one place: in the trainer or in `muster`")
            of_trainer = {name for name, errors in self.trainer.items() if chosen(name, errors) and not name.startswith(FILES_AND_STORE)}
            job.environment = self.environment(job, "muster", armed, action_of)
            job.worker_environment = self.environment(job, "trainer", of_trainer, action_of)
            names = {("muster", name) for name in armed} | {("trainer", name) for name in of_trainer}
            job.write_data(random.Random(seed))
            job.write_job()
            self.train(job, names)
            self.assertEqual(names - self.reached(job), set(), "acted, but not written down")
            print(f"restarts {job.require_complete()['restarts']}", flush=True)
            job.environment = {}
            job.require_closed_form()
            self.export_with(job, action_of, chosen)

    def export_with(self, job, action_of, chosen):
        """`muster export` hit at each of its failpoints: the folder is whole, or not there and can be made."""
        for name in sorted(name for name, errors in self.muster.items() if name.startswith(EXPORT) and chosen(name, errors)):
            folder = "out-" + name
            environment = os.environ | self.environment(job, "muster", {name}, action_of)
            ended = subprocess.run([job.muster, "export", "job.yaml", "--output-dir", folder], cwd=job.folder, timeout=60,
                                   env=environment, capture_output=True, text=True, check=False)
            self.assertTrue(os.path.exists(job.path("acted-muster", name)), f"{name} was not reached\n{ended.stderr}")
            if os.path.exists(job.path(folder)):
                self.assertEqual(job.compare(folder), [], f"{name}: what is there is not whole")
            else:
                self.assertNotEqual(ended.returncode, 0, name)
                job.require_closed_form(folder)

    def kinds_of_error(self, seed):
        """Of any kind, and as on a full disk."""
        rng = random.Random(seed)
        return {name: rng.choice(["error", "full"]) for name in sorted(self.muster | self.trainer)}

    def first(self, action_of, seed, errors_only=False):
        self.run_with(action_of, seed, lambda name, errors: name not in AFTER_ERROR and (errors or not errors_only))

    def later(self, action_of, seed, errors_only=False):
        """At the third to eighth time that a process comes by."""
        rng = random.Random(seed)
        times = {name: rng.randrange(3, 9) for name in sorted(self.muster | self.trainer)}

        def action(name):
            if name in AFTER_ERROR:
                return action_of(name)
            return f"{'error' if name in AFTER_ERROR.values() else action_of(name)}@{times[name]}"

        def chosen(name, errors):
            return name.startswith(LATER) and (errors or not errors_only)

        self.run_with(action, seed, chosen)

    def test_first_crash(self):
        self.first(lambda name: "crash", seed=21)

    def test_first_error(self):
        self.first(self.kinds_of_error(22).get, seed=22, errors_only=True)

    def test_first_delay(self):
        self.first(lambda name: "delay:300ms", seed=23)

    def test_later_crash(self):
        self.later(lambda name: "crash", seed=24)

    def test_later_error(self):
        self.later(self.kinds_of_error(25).get, seed=25, errors_only=True)

    def test_later_delay(self):
        self.later(lambda name: "delay:300ms", seed=26)

    def rings(self, action_of, seed, errors_only=False):
        self.run_with(action_of, seed, lambda name, errors: name.startswith(RINGS) and (errors or not errors_only))

    def test_rings_crash(self):
        self.rings(lambda name: "crash", seed=27)

    def test_rings_stop(self):
        self.rings(lambda name: "stop", seed=28)

    def test_rings_error(self):
        self.rings(lambda name: "error", seed=29, errors_only=True)

    def test_wrong_name(self):
        """Nothing starts, and the message says what is wrong."""
        for actions, words in (("no.such=crash", "no such failpoint"), ("push.before-apply=error", "cannot return an error"),
                               ("push.before-apply=crash@0", "number from 1"), ("push.before-apply", "it has no =")):
            ended = subprocess.run([options.muster, "status"], env=os.environ | {"MUSTER_FAILPOINTS": actions}, text=True,
                                   capture_output=True, check=False, timeout=60)
            self.assertEqual(ended.returncode, 2)
            self.assertIn(words, ended.stderr)


def main():
    global options
    options, rest = counter_job.arguments(__doc__, "failpoint_test.py -k first_crash")
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
