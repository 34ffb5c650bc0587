"""One job of group_member, run by the real `muster run`, whose members log their steps."""

import glob
import os
import tempfile

from group_flights import steps
from scaling import job as jobs
from scaling.job import processes
from speed import ours

TRAINER = "group_member"
MEMORY = "/dev/shm"  # where files need no disk
EPOCHS = 1_000_000  # no job ends before it is measured
LINES_STEPS = 1000  # steps of an epoch


class Run:
    """`with Run(...)`: a group of `members` that trains until it is left. `minibatches` of one record are a step, `most` members
    may be there. `group` are fields of
    spec.group, `trainer` arguments of group_member; what else is named goes into `spec`."""

    def __init__(self, options, folder, members, *, minibatches=None, most=None, trainer=(), group=None, snapshots="1h", **more):
        self.members = members
        self.log = os.path.join(folder, "log")
        os.makedirs(self.log)
        minibatches = minibatches or members
        lines = os.path.join(folder, "lines")
        ours.write_lines(lines, LINES_STEPS * minibatches, 8)
        dataset = {"name": "train", "files": [lines], "epochs": EPOCHS, "minibatchSize": 1}
        command = [ours.program(options, TRAINER), self.log, *map(str, trainer)]
        settings = {"globalBatch": minibatches, "minMembers": 1, "joinWait": "60s"} | (group or {})
        spec = jobs.spec_of([dataset], command, workers=members, servers=0, snapshots=snapshots, group=settings,
                            restarts={"crashLoopExits": 1000, "backoffInitial": "0s", "backoffMax": "0s"}, **more)
        spec["replicaSpecs"]["worker"]["maxReplicas"] = most or members
        self.job = jobs.Job(options, folder, spec, TRAINER)

    def __enter__(self):
        self.job.__enter__()
        return self

    def __exit__(self, *ended):
        self.job.__exit__(*ended)

    def made(self):
        """The tries of a step that each member has logged: cheap to ask."""
        return [os.path.getsize(path) // steps.RECORD_BYTES for path in glob.glob(os.path.join(self.log, "*.steps"))]

    def wait_steps(self, count, seconds=60):
        """As many processes as there are members have logged `count` tries of steps."""
        def made():
            return len([one for one in self.made() if one >= count]) >= self.members
        self.job.wait(f"{count} steps of {self.members} members", made, seconds)

    def wait_members(self, count):
        """So many processes live and have computed in the newest steps: their pids, ascending."""
        def found():
            pids = self.pids()
            logs = {pid: steps.committed(log)[-3:] for (_, pid), log in self.steps().items() if pid in pids}
            fresh = [pid for pid, log in logs.items() if len(log) == 3 and all(step.minibatches for step in log)]
            return sorted(fresh) if len(fresh) == count == len(pids) else None
        return self.job.wait(f"{count} members", found)

    def wait_commit(self, moment, pids, seconds=60):
        """When one of these processes had a step committed after `moment`, in nanoseconds."""
        def found():
            return steps.first_commit_after([log for (_, pid), log in self.steps().items() if pid in pids], moment)
        return self.job.wait("a step after the disturbance", found, seconds)

    def steps(self):
        """{(node, pid): [Step]}, of the processes that have ended, too."""
        return steps.read(self.log)

    def pids(self, role="worker"):
        return processes.nodes(self.job.run.pid, TRAINER)[role]


def in_memory(work):
    """`work(folder)` with a folder that is not on a disk, or None where the machine has none."""
    if not os.access(MEMORY, os.W_OK):
        return None
    with tempfile.TemporaryDirectory(prefix="muster-group-", dir=MEMORY, ignore_cleanup_errors=True) as folder:
        return work(folder)
