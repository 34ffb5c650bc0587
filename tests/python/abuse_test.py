"""Python workers that treat the library badly, with the installed wheel: run it with the Python that has it (wheel_test.py does).

In rounds, workers are interrupted by Ctrl-C, raise, fork, and delete what they hold, at random places (abuse_trainer.py). Nothing may
crash, hang, stay behind, or keep memory, and each record takes effect exactly once all the same. The last line is what was seen, as
JSON. By hand: abuse_test.py --times 1000
"""

import argparse
import collections
import json
import os
import random
import re
import signal
import sys
import tempfile
import time
import unittest

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import job  # noqa: E402
from job import processes  # noqa: E402

TRAINER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "abuse_trainer.py")
# Python itself does not begin if Ctrl-C comes too early ("Fatal Python error: init_...").
CRASH = re.compile(r"crashed with signal|SIG(?:SEGV|ABRT|BUS|ILL|FPE|TRAP|SYS)|Fatal Python error: (?!init_)|Aborted|terminate called|nanobind: ")
# What a round leaves behind, at most. The allocators of NumPy and of glibc come to rest at some megabytes.
KEPT_MEMORY_MAX = 24 << 20
SILENCE_SECONDS = 100
# Of a round, at most: those that are interrupted take the most.
RECORDS = 1500
options = argparse.Namespace(times=60, seed=1)


class AbuseTest(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(options.seed)

    def rounds(self, run):
        path = run.path("rounds")
        if not os.path.exists(path):
            return []
        with open(path, encoding="ascii") as file:
            return [json.loads(line) for line in file.read().split("\n")[:-1]]

    def interrupt_one(self, run):
        """Ctrl-C, at any moment, to a process that need not survive: also while it begins or ends."""
        pids = [pid for pid in processes.descendants(run.run.pid) if processes.command_line(pid)[1:2] == [TRAINER] and node_of(pid) not in ("", "worker-0")]
        return bool(pids) and processes.send(self.random.choice(pids), signal.SIGINT)

    def abuse(self, run):
        """Until there were enough rounds. Returns how often a process was interrupted from outside; raises if it hangs."""
        interrupts, seen, told = 0, 0, time.monotonic()
        while len(rounds := self.rounds(run)) < options.times:
            if len(rounds) > seen:
                seen, told = len(rounds), time.monotonic()
            if run.run.poll() is not None or time.monotonic() - told > SILENCE_SECONDS:
                raise AssertionError(f"after {seen} rounds, the run has ended with {run.run.poll()}, or hangs\n{run.log()[-20_000:]}")
            if self.random.random() < 0.1:
                interrupts += self.interrupt_one(run)
            time.sleep(0.05)
        return interrupts

    def test_whatever_a_worker_does_nothing_crashes_or_stays(self):
        run = job.Job(self, str(options.seed), trainer=TRAINER, workers=3, numbered=True, failures_max=1000, records=options.times * RECORDS)
        interrupts = self.abuse(run)
        with open(run.path("over"), "w", encoding="ascii"):
            pass
        code = run.wait(timeout=4 * SILENCE_SECONDS)
        rounds, log = self.rounds(run), run.log()
        of_survivor = [one for one in rounds if one["node"] == "worker-0"]
        rest = of_survivor[len(of_survivor) // 3 :]
        seen = {
            "rounds": len(rounds),
            "interrupts_from_outside": interrupts,
            "ways": dict(sorted(collections.Counter(one["way"] for one in rounds).items())),
            "exit_code": code,
            "crashes": len(CRASH.findall(log)),
            "restarts_of_the_survivor": len({one["pid"] for one in of_survivor}) - 1,
            "kept": dict(collections.Counter(name for one in rounds for name in one["kept"])),
            "memory_growth": rest[-1]["memory"] - rest[0]["memory"],
            "memory": rest[-1]["memory"],
            "orphans": len(processes.wait_none_under(run.folder, 10)),
        }
        if code == 0:
            run.ask("export", "job.yaml", "--output-dir", "out")
            keys, values = (np.load(run.path(f"out/rows.{part}.npy")) for part in ("keys", "values"))
            seen["records_once"] = int(len(keys) == run.records and bool((values == 1).all()))
        print(json.dumps(seen), flush=True)
        self.assertEqual(code, 0, log[-20_000:])
        self.assertEqual((seen["crashes"], seen["restarts_of_the_survivor"], seen["kept"], seen["orphans"], seen["records_once"]), (0, 0, {}, 0, 1), log[-20_000:])
        self.assertLess(seen["memory_growth"], KEPT_MEMORY_MAX)


def node_of(pid):
    """The name of the node that a process is; empty if it is gone, or none."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = dict(one.partition(b"=")[::2] for one in file.read().split(b"\0"))
    except OSError:
        return ""
    return variables.get(b"MUSTER_NODE", b"").decode()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="Example: abuse_test.py --times 1000")
    parser.add_argument("--times", type=int, default=60, help="rounds (default 60)")
    parser.add_argument("--seed", type=int, default=1, help="of all that is random (default 1)")
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
