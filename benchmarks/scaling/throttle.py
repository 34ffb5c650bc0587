"""Holds a process to a share of a core from outside, with control groups of version 1 or 2.

`quota` writes the quota of the group that the process is in: to write the former quota again heals the process. `group` moves the process
into a group of our own: only another start helps, as where a neighbour takes the machine.
"""

import os
import time

PERIOD_US = 100_000


def _mounts():
    """{controller: (mount point, root of the mount)} of version 1; under "2" that of version 2."""
    found = {}
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        for line in file:
            before, _, after = line.partition(" - ")
            fields, (kind, _, options) = before.split(), after.split()[:3]
            if kind == "cgroup":
                for controller in options.split(","):
                    found.setdefault(controller, (fields[4], fields[3]))
            elif kind == "cgroup2":
                found.setdefault("2", (fields[4], fields[3]))
    return found


def cpu_group(pid):
    """(folder of the group whose quota holds `pid`, is version 1)."""
    mounts = _mounts()
    with open(f"/proc/{pid}/cgroup", encoding="utf-8") as file:
        groups = {controllers: path for _, controllers, path in (line.strip().split(":", 2) for line in file)}
    for controllers, path in groups.items():
        if "cpu" in controllers.split(",") and "cpu" in mounts:
            mount, root = mounts["cpu"]
            return os.path.join(mount, os.path.relpath(path, root)), True
    mount, root = mounts["2"]
    return os.path.join(mount, os.path.relpath(groups[""], root)), False


def _write(folder, name, value):
    with open(os.path.join(folder, name), "w", encoding="ascii") as file:
        file.write(str(value))


def _set_quota(folder, first, cores):
    quota = int(cores * PERIOD_US)
    if first:
        _write(folder, "cpu.cfs_period_us", PERIOD_US)
        _write(folder, "cpu.cfs_quota_us", quota)
    else:
        _write(folder, "cpu.max", f"{quota} {PERIOD_US}")


class Throttle:
    """`with Throttle(pid, 0.2, "group")`: everything in the node's group of `pid` is held back from now on; on leaving, what is left
    of it is free again."""

    def __init__(self, pid, cores, how):
        self.node_group, self.first = cpu_group(pid)
        if "muster-" not in self.node_group:
            raise OSError(f"process {pid} is in no group of its own ({self.node_group}): are control groups writable here?")
        self.own = None
        if how == "quota":
            _set_quota(self.node_group, self.first, cores)
            return
        # Beside the run's groups, not below: the node's group must stay removable.
        parent = os.path.dirname(os.path.dirname(self.node_group))
        self.own = os.path.join(parent, f"throttled-by-benchmark-{os.getpid()}-{pid}")
        os.mkdir(self.own)
        _set_quota(self.own, self.first, cores)
        for member in self._members(self.node_group):
            _write(self.own, "cgroup.procs", member)

    @staticmethod
    def _members(folder):
        with open(os.path.join(folder, "cgroup.procs"), encoding="ascii") as file:
            return file.read().split()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.own is None:
            return
        parent = os.path.dirname(self.own)
        for _ in range(50):
            for member in self._members(self.own):
                try:
                    _write(parent, "cgroup.procs", member)
                except OSError:
                    pass  # it has just ended
            try:
                os.rmdir(self.own)
                return
            except OSError:
                time.sleep(0.1)
