#!/usr/bin/env python3
"""A person steers a running job: sees it, restarts, scales, pauses a policy; every order is an event with an outcome, also after the scaler died.

The weights are exact in the end. Python's standard library only.
"""

import json
import os
import pty
import random
import select
import signal
import subprocess
import sys
import time
import unittest

import counter_job
from counter_job import processes

PATIENCE = 60  # seconds; only a failing test waits so long
options = None


class SteerTest(unittest.TestCase):
    def call(self, *arguments, code=0):
        """What a verb prints on stdout and on stderr."""
        result = subprocess.run([self.job.muster, *arguments], cwd=self.job.folder, text=True, capture_output=True, check=False,
                                timeout=PATIENCE)
        self.assertEqual(result.returncode, code, f"{arguments}: {result.stderr}")
        return result.stdout, result.stderr

    def ask(self, *arguments):
        """What a verb answers, as JSON."""
        return json.loads(self.call(*arguments, "--output", "json")[0])

    def events(self):
        """The scaler's events by their numbers."""
        lines = self.call("events", "job.yaml", "--output", "json")[0].splitlines()
        return {event["id"]: event["event"] for event in map(json.loads, lines) if event["source"] == "scaler"}

    def wait_for(self, what, condition):
        end = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), end, f"no result of the wait for: {what}\n{self.job.last_words()}")
            time.sleep(0.05)

    def serves(self):
        """A scaler answers orders."""
        return subprocess.run([self.job.muster, "policies", "job.yaml"], cwd=self.job.folder, capture_output=True,
                              check=False).returncode == 0

    def test_orders(self):
        # So slow that it lasts a minute unless hurried.
        with counter_job.CounterJob(options, seed=31, records=5000, epochs=2, slow_us=400000) as self.job:
            job = self.job
            job.write_data(random.Random(31))
            job.write_job()
            run = job.start()
            self.wait_for("a scaler that serves", self.serves)
            job.wait_progress(run, 0.05)

            seen = self.ask("top", "job.yaml", "--once")
            self.assertEqual({n["role"] for n in seen["nodes"]} & {"worker", "ps"}, {"worker", "ps"})
            self.assertEqual(seen["job"]["state"], "running")

            restarted = self.ask("restart", "worker-0", "job.yaml", "--reason", "a test", "--wait")
            self.assertEqual(restarted["event"]["kind"], "action")
            self.assertIn("a test", restarted["event"]["because"])
            self.assertEqual(restarted["outcome"]["cause_id"], restarted["event"]["id"])

            name = self.ask("policies", "job.yaml")["policies"][0]["name"]
            self.ask("policies", "pause", name, "job.yaml")
            self.assertTrue(self.ask("policies", "job.yaml")["policies"][0]["paused"])

            self.call("restart", "worker-99", "job.yaml", code=2)
            _, words = self.call("scale", "job.yaml", "--workers", "1000", code=1)
            self.assertIn("1000", words)

            before = self.events()
            scaler = next(n["pid"] for n in job.status()["nodes"] if n["role"] == "scaler")
            os.kill(scaler, signal.SIGKILL)
            processes.wait_gone([scaler], PATIENCE)
            self.wait_for("a scaler that serves again", self.serves)
            after = self.events()
            self.assertEqual({i: after.get(i) for i in before}, before, "a scaler's death loses no event")
            self.assertTrue(self.ask("policies", "job.yaml")["policies"][0]["paused"], "paused is paused")

            job.finish(run)
            # After the run, from the files.
            text, words = self.call("explain", str(restarted["event"]["id"]), "job.yaml")
            self.assertIn("a test", text)
            self.assertIn("no scaler answers", words)
            self.assertEqual(sorted(self.events()), list(range(1, len(self.events()) + 1)), "numbers without gaps")
            self.call("restart", "worker-0", "job.yaml", code=5)

    def cancel_at_a_terminal(self, *answers):
        """`muster cancel` with a person at a terminal, who gives these answers: exit code, and what the terminal showed."""
        person, terminal = pty.openpty()
        cancel = subprocess.Popen([self.job.muster, "cancel", "job.yaml"], cwd=self.job.folder, stdin=terminal, stdout=terminal,
                                  stderr=terminal)
        os.close(terminal)
        shown = ""
        with os.fdopen(person, "r+b", buffering=0) as screen:
            for answer in answers:
                asked = shown.count("[q]uit: ")
                while shown.count("[q]uit: ") == asked:
                    self.assertTrue(select.select([screen], [], [], PATIENCE)[0], f"no question: {shown}")
                    try:
                        shown += screen.read(4096).decode()
                    except OSError:
                        self.fail(f"it ended without a question: {shown}")
                screen.write(f"{answer}\n".encode())
            while True:
                try:
                    more = screen.read(4096)
                except OSError:  # how a terminal ends whose last program has closed it
                    break
                if not more:
                    break
                shown += more.decode()
        return cancel.wait(timeout=PATIENCE), shown

    def test_cancel_asks_a_person_first(self):
        with counter_job.CounterJob(options, seed=32, records=5000, epochs=2, slow_us=100000) as self.job:
            job = self.job
            job.snapshots = {"interval": "1h"}
            job.write_data(random.Random(32))
            job.write_job()
            run = job.start()
            job.wait_progress(run, 0.02)
            code, shown = self.cancel_at_a_terminal("perhaps", "q")
            self.assertEqual(code, 1, shown)
            self.assertIn("not committed yet. Take a snapshot first", shown)
            self.assertIn("the job was not cancelled", shown)
            self.assertEqual(job.status()["state"], "running")
            self.assertEqual(job.progress()[1], 0, "nothing was committed either")
            code, shown = self.cancel_at_a_terminal("")
            self.assertEqual(code, 0, shown)
            self.assertIn("cancelled; what is committed stays", shown)
            job.wait(run, 4)
            self.assertGreater(job.progress()[1], 0, "the snapshot came first")


def main():
    global options
    options, rest = counter_job.arguments(__doc__, "steer_test.py")
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
