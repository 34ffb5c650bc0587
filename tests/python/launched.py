"""A script that launches jobs: run_test.py runs it, and its workers run it again. launched.py MODE FOLDER"""

import json
import os
import sys
import time

import numpy as np

import muster

MODE, FOLDER = (sys.argv[1:] + ["", ""])[:2]


def numbers_of(batch):
    return batch.record_numbers


def count(session, **processes):
    """Adds 1 to the row of each record's number."""
    rows = session.table("rows", dim=1, optimizer=muster.Sum())
    for batch in session.batches(numbers_of, **processes):
        with batch:
            numbers = batch.data
            batch.metric("number", numbers.mean(), len(numbers))
            if not batch.evaluate:
                batch.push(rows, numbers.astype(np.uint64), np.ones((len(numbers), 1), np.float32))


def count_in_processes(session):
    """They must find a function of this script."""
    count(session, parse_processes=2)


def count_slowly(session):
    """Its job goes on until somebody ends it."""
    for batch in session.batches():
        with batch:
            time.sleep(0.05)


def fail(session):
    for batch in session.batches():
        batch.fail("planted")


def launch(function, **more):
    return muster.launch(function, data_records=1000, minibatch_size=16, workers=2, servers=2, state_directory=os.path.join(FOLDER, "state"), **more)


def await_worker(job):
    deadline = time.monotonic() + 60
    while not any(node["role"] == "worker" and node["state"] == "running" for node in job.nodes()):
        assert time.monotonic() < deadline, "no worker runs"
        time.sleep(0.02)


def main():
    if MODE == "train":
        with launch(count_in_processes, epochs=2, test_records=64) as job:
            pass
        print(json.dumps({"status": job.status()["state"], "metrics": job.metrics(), "summary": job.wait()["state"], "events": len(job.events())}))
    elif MODE == "orphan":
        job = launch(count_slowly, epochs=1000)
        print(json.dumps({"pid": job.pid}), flush=True)
        sys.stdin.read()
    elif MODE == "interrupted":
        with launch(count_slowly, epochs=1000) as job:
            await_worker(job)  # a run that has not started its workers yet is stopped, and not drained
            print(json.dumps({"pid": job.pid}), flush=True)
            job.wait()


if __name__ == "__main__":
    main()
