"""The worker of output_test.py: adds 1 to the row of each record's number, and predicts with these rows. output_trainer.py MODE FOLDER"""

import os
import signal
import sys

import numpy as np
import pyarrow as pa

import muster
from muster import _outputs

MODE, FOLDER = sys.argv[1:]
MARK = os.path.join(FOLDER, "disturbed")
last_shard = ""


def first():
    """True once in all runs of the job's workers."""
    try:
        os.close(os.open(MARK, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def disturb(batch):
    """In the second minibatch of a shard in the middle."""
    global last_shard
    is_second, last_shard = batch.shard == last_shard, batch.shard
    if batch.shard != "dict/0/3" or not is_second or MODE == "undisturbed" or not first():
        return None
    if MODE == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if MODE == "interrupted":
        _outputs.to_parquet = interrupt
    return MODE


def interrupt(pieces):
    raise KeyboardInterrupt


def predict(batch, trained):
    disturbed = disturb(batch)
    columns = {"number": batch.record_numbers, "trained": trained, "text": [f"of {number}" for number in batch.record_numbers]}
    if disturbed == "wrong":
        columns["number"] = columns["number"].astype(np.float32)
    batch.output(columns if batch.dataset == "dict" else pa.record_batch(columns))


def main():
    session = muster.connect()
    rows = session.table("rows", dim=1, optimizer=muster.Sum())
    try:
        for batch in session.batches():
            with batch:
                keys = batch.record_numbers.astype(np.uint64)
                if batch.predict:
                    predict(batch, batch.pull(rows, keys)[:, 0])
                elif not batch.evaluate:
                    batch.push(rows, keys, np.ones((len(keys), 1), np.float32))
    except KeyboardInterrupt:
        assert MODE == "interrupted"
        session.close()
        os.kill(os.getpid(), signal.SIGKILL)
    return session.finish()


if __name__ == "__main__":
    sys.exit(main())
