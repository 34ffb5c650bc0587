#!/usr/bin/env python3
"""`muster verify` as a user runs it: its report, its exit codes, the files that it leaves, and that it detects a rule that is broken on purpose.

Python's standard library only. How wrong weights are told is tested in tests/verify; here the real job must be right.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))
import processes  # noqa: E402

PATIENCE = 300  # seconds; only a failing test waits so long
# How often a rule broken on purpose may go unseen: the faults that show it are random.
PLANTED_TRIES = 5
options = None


class VerifyTest(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="muster-verify-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def start(self, *arguments):
        return subprocess.Popen([options.muster, "verify", "--directory", self.folder, *arguments], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)

    def verify(self, *arguments):
        """(exit code, stdout, stderr) of a run, which has left no process."""
        with self.start(*arguments) as run:
            try:
                out, err = run.communicate(timeout=PATIENCE)
            finally:
                run.kill()
        self.require_no_process()
        return run.returncode, out, err

    def require_no_process(self):
        left = processes.wait_none_under(self.folder, 10)
        self.assertEqual(left, [], [processes.command_line(pid) for pid in left])

    def test_nothing_is_lost(self):
        code, out, err = self.verify("--kills", "6", "--pauses", "1", "--seed", "1", "--output", "json")
        self.assertEqual(code, 0, out + err)
        report = json.loads(out.splitlines()[-1])
        self.assertEqual(report["verdict"], "ok")
        for name in ("lost", "unexpected", "duplicated", "wrong_rows"):
            self.assertEqual(report[name], 0, name)
        self.assertEqual(report["disagreements"], [])
        self.assertEqual((report["kills"], report["pauses"]), (6, 1))
        self.assertEqual(sum(report["kills_by_role"].values()), 6)
        self.assertEqual(report["acknowledged"], report["records"] * report["epochs"])
        self.assertEqual(report["attempts"], report["acknowledged"] + report["redelivered"])
        self.assertGreater(report["redelivered"], 0)
        for role, kills in report["kills_by_role"].items():
            self.assertLessEqual(report["recovery_ms"][role]["count"], kills, role)
        self.assertEqual(report["directory"], "")
        self.assertEqual(os.listdir(self.folder), [])
        self.assertIn("7/7", err)

    def test_group_leaves_no_trace(self):
        code, out, err = self.verify("--group", "--kills", "6", "--pauses", "1", "--seed", "1", "--output", "json")
        self.assertEqual(code, 0, out + err)
        report = json.loads(out.splitlines()[-1])
        self.assertEqual(report["verdict"], "ok")
        group = report["group"]
        for name in ("in_no_step", "in_two_steps", "states_different", "members_different"):
            self.assertEqual(group[name], 0, name)
        for name in ("lost", "unexpected", "duplicated", "wrong_rows"):
            self.assertEqual(report[name], 0, name)
        self.assertEqual((report["kills"], report["pauses"]), (6, 1))
        self.assertEqual(report["kills_by_role"], {"worker": 4, "ps": 0, "master": 2, "scaler": 0})
        self.assertEqual(report["acknowledged"], report["records"] * report["epochs"])
        self.assertGreaterEqual(group["steps"] * 64, report["acknowledged"])
        self.assertGreaterEqual(group["states_compared"], group["steps"])
        self.assertGreater(group["attempts"], 1)
        self.assertGreaterEqual(group["members"], 1)
        self.assertEqual(os.listdir(self.folder), [])
        self.assertIn("first, the same job without faults", err)
        self.assertIn("7/7", err)

    def test_group_without_a_record_is_wrong(self):
        trainer = os.path.join(self.folder, "trainer")
        real = os.path.join(os.path.dirname(options.muster), "verify_worker")
        with open(trainer, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/bash\nexec -a "$0" "{real}" "$@" --leave-out 17\n')
        os.chmod(trainer, 0o755)
        code, out, err = self.verify("--group", "--kills", "1", "--pauses", "0", "--trainer", trainer, "--no-progress")
        self.assertEqual(code, 6, out + err)
        self.assertTrue(out.startswith("WRONG"), out)
        self.assertIn("record 17 of epoch 1 is in no step", out)

    def test_folder_is_kept_when_asked(self):
        code, out, err = self.verify("--kills", "1", "--pauses", "0", "--workers", "1", "--servers", "1", "--keep", "--no-progress")
        self.assertEqual((code, err), (0, ""), out)
        self.assertIn("Nothing is lost", out)
        kept = [line.split()[-1] for line in out.splitlines() if "kept" in line]
        self.assertEqual([os.path.join(self.folder, name) for name in os.listdir(self.folder)], kept)
        for name in ("job.yaml", "histories", "export/ids.values.npy", "state/summary.json"):
            self.assertTrue(os.path.exists(os.path.join(kept[0], name)), name)

    def test_installed(self):
        prefix = os.path.join(self.folder, "prefix")
        build = os.path.dirname(os.path.dirname(options.muster))
        subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
        installed = [os.path.join(prefix, "bin", "muster"), "verify", "--directory", self.folder, "--kills", "1", "--pauses", "0"]
        result = subprocess.run(installed, text=True, capture_output=True, timeout=PATIENCE, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        os.remove(os.path.join(prefix, "libexec", "muster", "verify_worker"))
        result = subprocess.run(installed, text=True, capture_output=True, timeout=PATIENCE, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("libexec/muster/verify_worker", result.stderr)

    def test_a_broken_rule_is_seen(self):
        for seed in range(1, PLANTED_TRIES + 1):
            code, out, err = self.verify("--planted-bug", "no-reverify", "--seed", str(seed), "--kills", "18", "--pauses", "0",
                                         "--output", "json", "--no-progress")
            if code != 0:
                break
        self.assertEqual(code, 6, out + err)
        report = json.loads(out.splitlines()[-1])
        self.assertEqual(report["verdict"], "wrong")
        self.assertGreater(report["lost"], 0)
        self.assertGreater(len(report["samples"]), 0)
        self.assertTrue(os.path.exists(os.path.join(report["directory"], "export")))

    def test_interrupt_leaves_nothing(self):
        with self.start("--kills", "1000") as run:
            try:
                for line in run.stderr:
                    if "kill " in line:
                        break
                run.send_signal(signal.SIGINT)
                out, _ = run.communicate(timeout=PATIENCE)
            finally:
                run.kill()
        self.assertEqual(run.returncode, 3, out)
        self.assertIn("stopped by the user", out)
        self.assertEqual(os.listdir(self.folder), [])
        self.require_no_process()

    def test_sigkill_leaves_no_process(self):
        with self.start("--kills", "1000") as run:
            for line in run.stderr:
                if "kill " in line:
                    break
            run.kill()
        self.require_no_process()

    def test_job_that_fails_is_not_proven(self):
        with self.start("--kills", "1000", "--output", "json") as run:
            try:
                for line in run.stderr:
                    if "kill " in line:
                        break
                job = [pid for pid in processes.descendants(run.pid) if processes.command_line(pid)[1:2] == ["run"]]
                self.assertTrue(processes.send(job[0], signal.SIGKILL))
                out, _ = run.communicate(timeout=PATIENCE)
            finally:
                run.kill()
        self.assertEqual(run.returncode, 1, out)
        report = json.loads(out.splitlines()[-1])
        self.assertEqual(report["verdict"], "not proven")
        self.assertIn("SIGKILL", report["problem"])
        self.assertNotIn("lost", report)
        self.assertTrue(os.path.exists(report["directory"]))
        self.require_no_process()

    def test_arguments(self):
        for arguments, words in (
            (["--kills", "2001"], "--kills"),
            (["--pauses", "501"], "--pauses"),
            (["--pauses", "-1"], "--pauses"),
            (["--workers", "0"], "--workers"),
            (["--servers", "17"], "--servers"),
            (["--partitions", "5000"], "--partitions"),
            (["--partitions", "1"], "--servers 2"),
            (["--group", "--servers", "1"], "--servers"),
            (["--group", "--workers", "17"], "--workers"),
            (["--seed", "x"], "--seed"),
            (["--output", "xml"], "--output"),
            (["--trainer", "/no/such/worker"], "/no/such/worker"),
            (["--bogus"], "--bogus"),
        ):
            code, _, err = self.verify(*arguments)
            self.assertEqual(code, 2, arguments)
            self.assertIn(words, err)
        code, out, _ = self.verify("--help")
        self.assertEqual(code, 0)
        self.assertIn("Examples:", out)
        self.assertEqual(os.listdir(self.folder), [])


def main():
    global options
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="Example: verify_test.py --muster build/dev/cli/muster -k arguments",
    )
    parser.add_argument("--muster", required=True, type=os.path.abspath, help="the muster executable")
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
