"""Runs the peers of benchmarks/peers, each in the virtual environment that benchmarks/peers/install made."""

import json
import os
import subprocess

from scaling import job as jobs

SCRIPTS = os.path.join(jobs.ROOT, "benchmarks", "peers")
DEFAULT_FOLDER = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "muster-peers")
DEPTHS = (1, 4, 8)  # calls in progress


def python(options, peer):
    """Of the peer's environment; None where it is not installed."""
    path = os.path.join(options.peers, peer, "bin", "python")
    return path if os.access(path, os.X_OK) else None


def missing(options, peer):
    """How to get it."""
    return f"{peer} is not in {options.peers}: benchmarks/peers/install --folder {options.peers} {peer}"


def ask(options, peer, script, *arguments):
    """The script's output, one line of JSON."""
    command = [python(options, peer), os.path.join(SCRIPTS, script), *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=900, check=False)
    if done.returncode != 0:
        raise jobs.Failed(f"{' '.join(command)} ended with code {done.returncode}:\n{done.stderr[-4000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def run(options, row, inputs):
    """{"version", "depths": {calls or clients at a time: figures}} of the row's peer."""
    if row.peer == "dlrover":
        return ask(options, "dlrover", "dlrover_master.py", "--clients", row.workers, "--seconds", options.seconds)
    depths = (1,) if row.mode == "small" else DEPTHS
    return ask(options, "torch", "torch_rpc.py", row.mode, "--keys", inputs["keys"], "--dim", row.dim, "--tables", row.tables,
               "--transport", "uv" if row.tcp else "default", "--depths", ",".join(map(str, depths)), "--seconds", options.seconds)
