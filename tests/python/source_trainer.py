"""The worker of source_test.py: adds 1 to the row of each record that it reads from Parquet files. source_trainer.py DATA FOLDER"""

import os
import sys
import time

import numpy as np

import muster

DATA, FOLDER = sys.argv[1:]
NODE = os.environ["MUSTER_NODE"]


def write(name, text):
    """Others see all of the text or nothing."""
    path = os.path.join(FOLDER, name)
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(path + ".part", path)


def await_file(name):
    while not os.path.exists(os.path.join(FOLDER, name)):
        time.sleep(0.02)


def refused(session, paths):
    """worker-1 opens the files in another order, once worker-0 has registered its own."""
    await_file("registered")
    try:
        muster.parquet(paths[::-1]).check(session)
    except muster.AlreadyExists as error:
        write("refused", str(error))
        raise


def main():
    with muster.connect() as session:
        paths = [os.path.join(DATA, f"train-{part}.parquet") for part in range(2)]
        if NODE == "worker-1" and not os.path.exists(os.path.join(FOLDER, "refused")):
            refused(session, paths)
        train, test = muster.parquet(paths, columns=["number"]), muster.parquet(os.path.join(DATA, "test.parquet"), columns=["number"])
        train.check(session)
        test.check(session, name="source-of-test")
        assert session.numbered_datasets() == {"train": len(train), "test": len(test)}
        some = muster.parquet(paths[0], columns=["number"])
        try:
            some.check(session, name="some")
        except muster.FailedPrecondition as error:
            write("other-count", str(error))
        write("registered", "")
        await_file("refused")
        rows = session.table("rows", dim=1, optimizer=muster.Sum())
        for batch in session.batches():
            with batch:
                source = test if batch.evaluate else train
                numbers = source.read(batch.record_numbers)["number"].to_numpy()
                assert np.array_equal(numbers, batch.record_numbers)
                batch.metric("number", numbers.mean(), len(numbers))
                if not batch.evaluate:
                    batch.push(rows, numbers.astype(np.uint64), np.ones((len(numbers), 1), np.float32))


if __name__ == "__main__":
    main()
