"""One job of speed_trainer, run by the real `muster run`, and its figures in a window of time that all its workers share."""

import array
import glob
import json
import os
import subprocess
import time

from scaling import job as jobs
from scaling.job import processes
from scaling.overhead import cpu_seconds
from speed import compare

TRAINER = "speed_trainer"
PYTHON_TRAINER = os.path.join(jobs.ROOT, "benchmarks", "speed_trainer.py")
EPOCHS = 1_000_000  # no job ends before it is measured
LEAD_SECONDS = 0.3  # from the announcement of a window to its beginning
# The path of a UNIX socket has about a hundred bytes: below a longer folder servers listen on TCP alone.
TCP_ONLY = "tcp-only-because-every-path-of-a-socket-below-this-folder-is-longer-than-the-path-of-a-unix-socket-may-be"


def program(options, name):
    return os.path.join(options.build, "benchmarks", name)


def limits(options, *arguments):
    """The output of speed_limits."""
    done = subprocess.run([program(options, "speed_limits"), *map(str, arguments)], stdout=subprocess.PIPE, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise jobs.Failed(f"speed_limits {' '.join(map(str, arguments))} ended with code {done.returncode}")
    return json.loads(done.stdout) if done.stdout else None


def write_keys(options, row, folder):
    path = os.path.join(folder, "keys")
    keys = row.keys
    limits(options, "keys", path, keys.rows, keys.a_call, keys.calls, keys.exponent)
    return path


def write_lines(path, lines, length):
    """Lines of numbers, `length` bytes each with their ends."""
    with open(path, "w", encoding="ascii") as file:
        for first in range(0, lines, 10_000):
            file.writelines(f"{number:0{length - 1}d}\n" for number in range(first, min(first + 10_000, lines)))


def parts(records, files):
    """How many records each file has: they differ by one at most."""
    return [records * (number + 1) // files - records * number // files for number in range(files)]


def write_files(folder, records, files, length):
    """Files in a new folder that share the records, lines of numbers."""
    os.makedirs(folder)
    for number, count in enumerate(parts(records, files)):
        write_lines(os.path.join(folder, f"{number:06d}"), count, length)


def spec(options, row, inputs, folder):
    """`inputs`: paths of the "lines", and of the "keys" where the row has some; "dataset" has more of its fields, if any."""
    command = [*([row.python, PYTHON_TRAINER] if row.python else [program(options, TRAINER)]), row.mode, folder]
    dataset = {"name": "train", "files": [inputs["lines"]], "epochs": EPOCHS} | inputs.get("dataset", {})
    if row.mode == "lease":
        dataset |= {"minibatchSize": 1, "minibatchesPerShard": 1}
    elif row.mode == "dense":
        command += [str(options.tensor_bytes // 4), str(row.tables)]
        dataset |= {"minibatchSize": 1, "minibatchesPerShard": 1024}
    elif row.mode != "read":
        command += [inputs["keys"], str(row.dim), str(row.tables)]
        dataset |= {"minibatchSize": 1, "minibatchesPerShard": 1024}
    security = {"security": {"tls": "always"}} if row.tls else {}
    return jobs.spec_of([dataset], command, workers=row.workers, servers=row.servers, snapshots=row.snapshots, partitions=row.partitions,
                        training={"prefetchMinibatches": row.prefetch}, **security)


def trainer_of(row):
    """The file name of what its workers run."""
    return os.path.basename(row.python) if row.python else TRAINER


def cpu_of(job, row):
    """{role: CPU seconds so far}."""
    return {role: sum(map(cpu_seconds, pids)) for role, pids in processes.nodes(job.run.pid, trainer_of(row)).items()}


def sleep_until(ns):
    time.sleep(max(0, ns - time.monotonic_ns()) / 1e9)


def said_in(folder):
    """Where the workers of the job in `folder` write."""
    return os.path.join(folder, "said")


def steps(folder):
    """[(end, latency)] of every step of the job's only worker, nanoseconds on the clock that all processes share."""
    (path,) = glob.glob(os.path.join(said_in(folder), "*.steps"))
    numbers = array.array("q")
    with open(path, "rb") as file:
        numbers.frombytes(file.read())
    return list(zip(numbers[::2], numbers[1::2]))


def run(options, row, inputs, folder, watch=lambda job, end: sleep_until(end)):
    """The figures of the row. `watch(job, end)` is called when the window begins, and returns when it is over."""
    if row.tcp:
        folder = os.path.join(folder, TCP_ONLY)
    said = said_in(folder)
    os.makedirs(said)
    with jobs.Job(options, folder, spec(options, row, inputs, said), trainer_of(row)) as job:
        def ready(ending):
            return len(glob.glob(os.path.join(said, "*" + ending))) == row.workers
        job.wait("warm workers", lambda: ready(".ready"), 300, 0.05)
        sockets = glob.glob(os.path.join(folder, "state", "run", "ps-*.sock"))
        if row.tcp == bool(sockets):
            raise jobs.Failed(f"servers have {len(sockets)} UNIX sockets: {folder}")
        begin = time.monotonic_ns() + int(1e9 * LEAD_SECONDS)
        end = begin + int(1e9 * options.seconds * row.longer)
        window = os.path.join(said, "window")
        with open(window + ".new", "w", encoding="ascii") as file:
            file.write(f"{begin} {end}\n")
        os.rename(window + ".new", window)
        sleep_until(begin)
        before = cpu_of(job, row)
        watch(job, end)
        after = cpu_of(job, row)
        job.wait("figures", lambda: ready(".json"), 60)
        workers = []
        for path in sorted(glob.glob(os.path.join(said, "*.json"))):
            with open(path, encoding="ascii") as file:
                workers.append(json.load(file))
    return compare.of_row(row.mode, compare.merged(workers), after["ps"] - before["ps"], after["master"] - before["master"], options.tensor_bytes)
