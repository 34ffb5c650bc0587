#!/usr/bin/env python3
"""Predictions whose place cannot be written for a while: the job says so, waits, and misses nothing. Python's standard library only.

The disk of the outputs is full, or hangs as one behind a network does. `muster status` must say that, of which worker and since when,
while shards go back and are no failures. When the disk is well again, the outputs must be what they are without all that. Of a service
of S3 that does not answer, it must say the same.
"""

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

import predict_test
from predict_test import processes

import s3_server  # noqa: E402  (predict_test adds scripts/lib)


def job_of(options, folder):
    job = predict_test.job_of(options, folder)
    worker = job["spec"]["replicaSpecs"]["worker"]
    worker["env"] |= {"LD_PRELOAD": options.full_disk, "FULL_DISK_FLAG": os.path.join(folder, "flag"),
                      "FULL_DISK_FOLDER": os.path.join(folder, "outputs")}
    # A shard that failed would end the job.
    job["spec"]["leases"] |= {"failuresMax": 1}
    return job


def ask(options, folder, *verb):
    """What `muster` answers; empty if it cannot yet."""
    asked = subprocess.run([options.muster, *verb, "job.yaml"], cwd=folder, text=True, capture_output=True, check=False)
    return asked.stdout if asked.returncode == 0 else ""


def reason_of(options, folder):
    return json.loads(ask(options, folder, "status", "--output", "json") or '{"reason": ""}')["reason"]


def start(options, folder, job):
    with open(os.path.join(folder, "job.yaml"), "w", encoding="utf-8") as file:
        json.dump(job, file)
    with open(os.path.join(folder, "run.log"), "w", encoding="utf-8") as log:
        return subprocess.Popen([options.muster, "run", "job.yaml", "--no-progress"], cwd=folder, stdout=log, stderr=subprocess.STDOUT,
                                env=os.environ | s3_server.KEYS)


def bucket_is_away(options, folder, told):
    """Runs the job until it says so. What becomes of it when the service is back is what becomes of a disk."""
    job = predict_test.job_of(options, folder)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        job["spec"]["snapshots"] |= {"s3": {"endpoint": f"http://127.0.0.1:{nobody.getsockname()[1]}", "region": "eu-test-1", "pathStyle": True}}
        job["spec"]["datasets"][0]["output"] = "s3://bucket/outputs"
        run = start(options, folder, job)
        try:
            predict_test.wait_for(run, f"reason like {told}", lambda: re.search(told, reason_of(options, folder)))
            if "shard-failure" in ask(options, folder, "events"):
                raise AssertionError("a shard was charged")
        finally:
            processes.stop_group(run)
            processes.wait_none_under(folder, 10)


def predict(options, folder, flag, told):
    """Runs the job on a disk with that fault until it is told of, and then without it."""
    with open(os.path.join(folder, "flag"), "w", encoding="utf-8") as file:
        file.write(flag)
    run = start(options, folder, job_of(options, folder))
    try:
        predict_test.wait_for(run, f"reason like {told}", lambda: re.search(told, reason_of(options, folder)))
        if predict_test.outputs(folder):
            raise AssertionError("there are outputs on a disk that takes none")
        os.remove(os.path.join(folder, "flag"))
        if run.wait(timeout=predict_test.DEADLINE_SECONDS) != 0:
            raise AssertionError(f"the run ended with {run.returncode}")
        events = ask(options, folder, "events")
        for event in ("outputs-error worker-", "outputs-work-again worker-"):
            if event not in events:
                raise AssertionError(f"there was no event {event}")
    finally:
        processes.stop_group(run)
    predict_test.require_outputs(folder, options.records)
    predict_test.require_nothing_else(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="Example: place_test.py --muster build/dev/cli/muster "
                                     "--trainer build/dev/tests/integration/predict/predict_trainer "
                                     "--full-disk build/dev/tests/integration/libfull_disk.so --records 100000")
    parser.add_argument("--muster", required=True, type=os.path.abspath)
    parser.add_argument("--trainer", required=True, type=os.path.abspath)
    parser.add_argument("--full-disk", required=True, type=os.path.abspath, help="the library that makes a disk full, or hang")
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    nothing = r"^no outputs were written for \d+:\d\d"
    faults = {"full": rf"{nothing}: the disk of worker-\d's outputs is full: .*/outputs/.*No space left on device",
              "hangs": rf"{nothing}, because worker-\d cannot write its outputs: writing .*/outputs/new-\d+.npy does not come to an end"}
    for flag, told in faults.items():
        folder = os.path.realpath(tempfile.mkdtemp(prefix="muster-place-"))
        print(f"folder {folder}, the disk: {flag}", flush=True)
        predict(options, folder, flag, told)
        shutil.rmtree(folder)
    folder = os.path.realpath(tempfile.mkdtemp(prefix="muster-place-"))
    print(f"folder {folder}, the bucket is away", flush=True)
    bucket_is_away(options, folder, rf"{nothing}, because worker-\d cannot write its outputs: .*s3://bucket/outputs/muster-job.*")
    shutil.rmtree(folder)
    print("outputs on a disk that was full, and on one that hung: told of, no output missing, none twice; a bucket that is away is told of")


if __name__ == "__main__":
    sys.exit(main())
