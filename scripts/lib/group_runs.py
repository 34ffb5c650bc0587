"""Runs of examples/text, each in a folder of its own, and what their members leave there: losses and models."""

import glob
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import typing

TRAINER = "text_trainer"


class Model(typing.NamedTuple):
    """The newest model of a run. Members that were not up to date at its end have older ones, or none."""
    updates: int
    digest: str  # SHA-256 of the file: sizes and all weights


def _lines(path):
    """The whole lines of a file that may grow, or may not be there yet."""
    try:
        with open(path, encoding="ascii") as file:
            return [line.strip() for line in file if line.endswith("\n")]
    except FileNotFoundError:
        return []


def losses(folder):
    """{step: (epoch, bits per character)} by the files of all members together: a member that joined did not see the first steps. Raises
    ValueError if two members differ."""
    found = {}
    for path in glob.glob(os.path.join(folder, "loss-*.csv")):
        for line in _lines(path):
            step, epoch, loss = line.split(",")
            seen = (int(epoch), float(loss))
            if found.setdefault(int(step), seen) != seen:
                raise ValueError(f"step {step} has the losses {found[int(step)]} and {seen}")
    return found


def last_step(folder):
    """The newest step that a member has made; 0 before the first one. Members may differ, as after a step that was lost and made again."""
    paths = glob.glob(os.path.join(folder, "loss-*.csv"))
    return max((int(line.split(",")[0]) for path in paths for line in _lines(path)), default=0)


def models(folder):
    """[(updates, path, SHA-256 of the file)] of the models of a run, the newest ones last."""
    found = []
    for path in glob.glob(os.path.join(folder, "model-*.bin")):
        with open(path, "rb") as file:
            data = file.read()
        found.append((int(data[: data.index(b"\n")].split()[-1]), path, hashlib.sha256(data).hexdigest()))
    return sorted(found)


def model(folder):
    """The newest model of a run. Raises ValueError if there is none, or if two members differ."""
    found = models(folder)
    if not found:
        raise ValueError("no member has written a model")
    newest = found[-1][0]
    digests = {digest for updates, _, digest in found if updates == newest}
    if len(digests) != 1:
        raise ValueError(f"members have different weights after {newest} steps: {sorted(digests)}")
    return Model(newest, digests.pop())


def prepare(name):
    """The folder of a run, made anew inside the demo's: its old state is gone, so the job starts from the beginning."""
    shutil.rmtree(name, ignore_errors=True)
    os.mkdir(name)
    for file in ("train.txt", "test.txt", TRAINER):
        os.symlink(os.path.join("..", file), os.path.join(name, file))


def run(muster, folder, watch, output=None):
    """Runs `folder`/job.yaml to its end, while `watch(run)` does what it likes. The summary of the job; None if it did not succeed, with
    the reason on stderr."""
    job = subprocess.Popen([muster, "run", "job.yaml"], cwd=folder, stdout=output)
    # Ctrl-C goes to the whole foreground group: `muster run` drains, and this script waits for it. SIGTERM comes to this script alone.
    signal.signal(signal.SIGTERM, lambda *_: job.terminate())
    watcher = threading.Thread(target=watch, args=(job,))
    watcher.start()
    code = job.wait()
    watcher.join()
    if code != 0:
        print(f"demo: muster run ended with exit code {code}; logs are in {os.path.abspath(folder)}/state/logs", file=sys.stderr)
        return None
    with open(os.path.join(folder, "state", "summary.json"), encoding="utf-8") as file:
        return json.load(file)


def exact(summary):
    """Whether every record of every epoch is committed once."""
    epochs = [epoch for dataset in summary["datasets"] for epoch in dataset["epochs"]]
    return all(epoch["records_committed"] == epoch["records_expected"] for epoch in epochs)
