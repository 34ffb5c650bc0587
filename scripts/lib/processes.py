"""Finds the processes of a `muster run` by their ancestry, without asking Muster, because a program that kills them must not depend on them."""

import os
import signal
import time


def _stat(pid):
    """(parent, state) of a process, or None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return int(fields[1]), fields[0].decode()
    except (OSError, IndexError, ValueError):
        return None


def parent(pid):
    """The pid of the process above it; None when it is gone."""
    stat = _stat(pid)
    return stat[0] if stat is not None else None


def paused(pid):
    """True while the process is stopped by a signal."""
    stat = _stat(pid)
    return stat is not None and stat[1] == "T"


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return [part.decode(errors="replace") for part in file.read().split(b"\0")[:-1]]
    except OSError:
        return []


def descendants(root):
    """Pids below `root`, zombies left out, in no particular order."""
    children = {}
    states = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (stat := _stat(int(name))) is not None:
            children.setdefault(stat[0], []).append(int(name))
            states[int(name)] = stat[1]
    found, todo = [], [root]
    while todo:
        for child in children.get(todo.pop(), []):
            todo.append(child)
            if states[child] not in "ZX":
                found.append(child)
    return found


def nodes(run_pid, trainer):
    """{"master": [pids], "scaler": [...], "ps": [...], "worker": [...]} of the descendants of a `muster run`; `trainer` is the trainer's file
    name."""
    result = {"master": [], "scaler": [], "ps": [], "worker": []}
    for pid in descendants(run_pid):
        arguments = command_line(pid)
        if not arguments:
            continue
        program = os.path.basename(arguments[0])
        if program == trainer:
            result["worker"].append(pid)
        elif program in ("muster", "exe") and len(arguments) > 1 and arguments[1] in ("master", "scaler", "ps"):
            result[arguments[1]].append(pid)
    return {role: sorted(pids) for role, pids in result.items()}


def memory(pid):
    """(resident memory, the most since its beginning or since `forget_most_memory`), in bytes. Fails if the process is gone."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        lines = dict(line.split(":", 1) for line in file if line.startswith(("VmRSS:", "VmHWM:")))
    return tuple(1024 * int(lines[name].split()[0]) for name in ("VmRSS", "VmHWM"))


def forget_most_memory(pid):
    """`memory` counts the most anew."""
    with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def working_under(folder):
    """Pids of the processes whose working directory is `folder` or below it."""
    folder = os.path.realpath(folder)
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.path.realpath(os.readlink(f"/proc/{name}/cwd")).startswith(folder):
                found.append(int(name))
        except OSError:
            continue
    return found


def send(pid, number):
    """Sends a signal; False when the process is gone."""
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


def wait_gone(pids, seconds):
    """Waits until none of `pids` lives, at most `seconds`; those that still do."""
    end = time.monotonic() + seconds
    while True:
        left = [pid for pid in pids if (stat := _stat(pid)) is not None and stat[1] not in "ZX"]
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.05)


def wait_none_under(folder, seconds):
    """Waits until no process works in `folder` or below it, at most `seconds`; those that still do."""
    end = time.monotonic() + seconds
    while (left := working_under(folder)) and time.monotonic() < end:
        time.sleep(0.05)
    return left


def stop_group(process):
    """Ends a `muster run` that a script started, whatever became of it."""
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
        process.wait()
