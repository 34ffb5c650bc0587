#!/usr/bin/env python3
"""How people start `muster run`: with a proxy in the environment, by `nohup`, with any umask, from a shell with children of its own that
becomes `muster run` by exec. The job trains, with exact weights.

Python's standard library only.
"""

import os
import signal
import sys
import unittest

import counter_job
from counter_job import processes

PROXY = {name: "http://127.0.0.1:9" for name in ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY")}
# A shell with a child of its own that becomes `muster run`; the child of its subshell is an orphan then.
WRAPPER = ["sh", "-c", "umask 000; trap '' HUP; ((cd / && exec sleep 600) & echo $! > orphan); (cd / && exec sleep 600) & echo $! > child; exec \"$@\"", "sh"]
options = None


class HostingTest(unittest.TestCase):
    def begin(self, job):
        job.silence = "60s"
        job.failures_max = 1000
        job.wrapper = WRAPPER
        return job.begin(0.001)

    def finish(self, job, run):
        job.finish(run)
        for name in ("child", "orphan"):
            with open(job.path(name), encoding="ascii") as file:
                pid = int(file.read())
            self.assertTrue(processes.send(pid, signal.SIGKILL), f"the {name} of the shell was killed")

    def test_hosting(self):
        """Proxies, a umask of 000, a hang-up that is ignored from the start, children that are not ours; a worker is killed meanwhile."""
        with counter_job.CounterJob(options, seed=61, records=20000, epochs=1, slow_us=50000, environment=PROXY) as job:
            run = self.begin(job)
            self.assertEqual(self.open_to_others(job.path("state")), [])
            run.send_signal(signal.SIGHUP)
            worker = processes.nodes(run.pid, os.path.basename(job.trainer))["worker"][0]
            self.assertTrue(processes.send(processes.parent(worker), signal.SIGKILL))
            job.wait_progress(run, 0.05)
            self.finish(job, run)

    def open_to_others(self, top):
        """What others may read or write below `top`."""
        found = []
        for folder, _, files in os.walk(top):
            for path in [folder] + [os.path.join(folder, name) for name in files]:
                try:
                    mode = os.lstat(path).st_mode
                except FileNotFoundError:  # temporary
                    continue
                if mode & 0o077:
                    found.append((path, oct(mode)))
        return found


if __name__ == "__main__":
    options, rest = counter_job.arguments(__doc__, os.path.basename(__file__))
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
