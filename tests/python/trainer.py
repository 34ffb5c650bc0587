"""The worker of job_test.py: a linear model, and what a test asks of it besides. trainer.py MODE FOLDER"""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np

import muster

MODE, FOLDER = sys.argv[1:]
FIRST_START = os.environ.get("MUSTER_START") == "1"


def write(name, text):
    """Others see all of the text or nothing."""
    path = os.path.join(FOLDER, name)
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(path + ".part", path)


class Linear:
    """y = weights @ (a, b, 1) + rows[c]."""

    def __init__(self, session):
        self.session = session
        self.weights = session.dense("weights", 3, optimizer=muster.Adagrad(0.5))
        self.rows = session.table("rows", dim=1, optimizer=muster.Adagrad(0.5))
        self.kept = []

    def parse(self, batch):
        if MODE == "parse":
            raise LookupError("planted in parse")
        assert batch.record_numbers.shape == (0,)
        values = np.array([line.split(b",") for line in batch.records]).astype(np.float32)
        keys = np.ascontiguousarray(values[:, 2]).astype(np.uint64)
        batch.need(self.rows, keys)
        batch.need(self.weights)
        return values[:, [0, 1]], keys, values[:, 3]

    def run(self, batch):
        numbers, keys, labels = batch.data
        rows, weights = batch.pull(self.rows, keys), batch.pull(self.weights)
        self.kept.append((rows, rows.copy()))
        self.kept.append((weights, weights.copy()))
        inputs = np.hstack([numbers, np.ones((len(keys), 1), np.float32)])
        error = inputs @ weights + rows[:, 0] - labels
        batch.metric("loss", (error**2).mean(), len(keys))
        batch.auc_of_logits("auc", error.astype(np.float32), labels > 1)
        if batch.evaluate:
            return
        batch.push(self.weights, error @ inputs / np.float32(batch.nominal_size))
        batch.push(self.rows, keys, error[:, None] / np.float32(batch.nominal_size))

    def check_kept(self):
        for array, then in self.kept:
            assert np.array_equal(array, then), "a kept array has changed"


def learn(session):
    model = Linear(session)
    kept, batches = [], 0
    node = os.environ["MUSTER_NODE"]
    write(f"joined-{node}", "")
    while not all(os.path.exists(os.path.join(FOLDER, f"joined-worker-{i}")) for i in range(2)):
        time.sleep(0.02)
    for batch in session.batches({"train": model.parse, "test": model.parse}):
        kept.append(batch)
        with batch:
            model.run(batch)
            batches += 1
    model.check_kept()
    changed = {array.tobytes() for array, _ in model.kept if array.shape == (3,)}
    write(f"learned-{node}", f"{batches} {len(changed)}")
    # What is not of the job can be read when all is over.
    session.close()
    model.check_kept()
    assert all(len(old.records) == len(old) and old.records[0].count(b",") == 3 for old in kept)
    with_error(lambda: kept[0].pull(model.weights), muster.FailedPrecondition)


def with_error(call, kind):
    try:
        call()
    except kind as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError(f"no {kind.__name__}")


def fail(session):
    """MODE raise: an exception in the loop, in the first run of one shard."""
    model = Linear(session)
    for batch in session.batches(model.parse):
        with batch:
            if not batch.evaluate and batch.step == 0 and not os.path.exists(os.path.join(FOLDER, "raised")):
                write("raised", "")
                raise ValueError("planted\nin two lines")
            model.run(batch)


def hooks(session):
    """MODE hooks: what is called when the loop comes to a minibatch, and before it is committed, in each of the three ways."""
    model, calls = Linear(session), {}

    def parse(batch):
        own = calls[batch] = []
        batch.on_begin(lambda: own.append("begin"))
        return model.parse(batch)

    before = None
    for batch in session.batches(parse):
        own = calls[batch]
        assert own == ["begin"] and before in (None, ["begin", "at once", "commit"]), (own, before)
        before = own
        batch.on_begin(lambda: own.append("at once"))
        batch.on_commit(lambda: own.append("commit"))
        way = batch.step % 3
        batch.on_commit(lambda: plant(way))
        if way == 0:
            with batch:
                model.run(batch)
        else:
            model.run(batch)
        if way == 1:
            batch.commit()
        if way != 2:  # which the step to the next minibatch commits
            with_error(lambda: batch.on_commit(print), muster.FailedPrecondition)


def plant(way):
    """Raises once for each way."""
    if not os.path.exists(os.path.join(FOLDER, f"planted-{way}")):
        write(f"planted-{way}", "")
        raise ValueError(f"planted at commit {way}")


def parse_alone(batch):
    """In a process of a pool."""
    assert os.getpid() != int(os.environ["TRAINER"])
    if MODE == "pool-raise" and batch.step == 5 and not os.path.exists(os.path.join(FOLDER, "raised")):
        write("raised", "")
        raise LookupError("planted in parse")
    if batch.step == 9 and not os.path.exists(os.path.join(FOLDER, "killed")):
        write("killed", "")
        os.kill(os.getpid(), signal.SIGKILL)
    write(f"process-{os.getpid()}", "")
    bad = [i for i, line in enumerate(batch.records) if line.endswith(b"bad")]
    for i in bad:
        batch.reject(i, "it is bad")
    with_error(lambda: batch.need(None, None), muster.FailedPrecondition)
    return np.array([line.split(b",") for i, line in enumerate(batch.records) if i not in bad]).astype(np.float32), batch.step


def pool(session):
    """MODE pool, pool-raise: `parse` in two processes, of which one is killed."""
    os.environ["TRAINER"] = str(os.getpid())
    model, prepared = Linear(session), []

    def prepare(batch, data):
        values, step = data
        assert step == batch.step
        prepared.append((batch.shard, step))
        keys = np.ascontiguousarray(values[:, 2]).astype(np.uint64)
        batch.need(model.rows, keys)
        batch.need(model.weights)
        return values[:, [0, 1]], keys, values[:, 3]

    said = [
        with_error(lambda: session.batches(lambda batch: None, parse_processes=2), TypeError),
        with_error(lambda: session.batches(model.parse, parse_processes=2), TypeError),
        with_error(lambda: session.batches(parse_alone, parse_processes=-1), ValueError),
        with_error(lambda: session.batches(parse_processes=2), ValueError),
        with_error(lambda: session.batches(model.parse, prepare=prepare), ValueError),
    ]
    taken = []
    for batch in session.batches({"train": parse_alone, "test": parse_alone}, parse_processes=2, prepare=prepare):
        taken.append((batch.shard, batch.step))
        with batch:
            model.run(batch)
    assert prepared == taken, "the order is that of the loop"
    write("said", "\n".join(said))


def wait_for_server(session):
    """MODE wait, close: waits in a pull for a server that the test has stopped, until a signal comes. In close, the
    signal's handler closes the loop."""
    model = Linear(session)
    batches = session.batches(model.parse)
    if MODE == "close":
        signal.signal(signal.SIGUSR1, lambda *_: (batches.close(), write("closed", "")))
    for batch in batches:
        with batch:
            if not os.path.exists(os.path.join(FOLDER, "ready")):
                write("ready", str(os.getpid()))
                while not os.path.exists(os.path.join(FOLDER, "go")):
                    time.sleep(0.02)
                threading.Thread(target=say_when_waiting, args=(threading.get_ident(),), daemon=True).start()
                batch.pull(model.rows, np.array([10**9], np.uint64))  # WAITS
            model.run(batch)


def leave(session):
    """MODE leave: one worker holds the only shard, the other one waits and is told to leave by a signal."""
    model = Linear(session)
    node = os.environ["MUSTER_NODE"]
    signal.signal(signal.SIGTERM, lambda *_: session.leave())
    write(f"pid-{node}", str(os.getpid()))
    for batch in session.batches(model.parse):
        with batch:
            if not os.path.exists(os.path.join(FOLDER, "go")):
                write("holds", node)
                while not os.path.exists(os.path.join(FOLDER, "go")):
                    time.sleep(0.02)
            model.run(batch)
    write(f"left-{node}", str(session.finish()))


def count(session):
    """MODE count: adds 1 to the row of each record's number."""
    rows = session.table("rows", dim=1, optimizer=muster.Sum())
    kept = []
    for batch in session.batches():
        with batch:
            numbers = batch.record_numbers
            assert numbers.dtype == np.int64 and numbers.shape == (len(batch),) and not numbers.flags.writeable
            assert numbers is batch.record_numbers and batch.records == [b""] * len(batch) and batch.header == b""
            kept.append((numbers, numbers.copy()))
            if batch.predict:
                assert batch.evaluate
                predict(batch, rows)
            elif batch.evaluate:
                batch.metric("number", numbers.mean(), len(numbers))
            else:
                batch.push(rows, numbers.astype(np.uint64), np.ones((len(numbers), 1), np.float32))
    session.finish()
    session.close()
    assert all(np.array_equal(numbers, then) for numbers, then in kept), "a kept array has changed"


def predict(batch, rows):
    """Each number and its row, as an array or as lines."""
    trained = batch.pull(rows, batch.record_numbers.astype(np.uint64))[:, 0]
    said = [
        with_error(lambda: batch.output(np.zeros((2, 2, 2), np.float32)), ValueError),
        with_error(lambda: batch.output(np.zeros(2)), TypeError),
        with_error(lambda: batch.output("text"), TypeError),
    ]
    write("output", "\n".join(said))
    if batch.dataset == "lines":
        batch.output(b"".join(b"%d %g\n" % one for one in zip(batch.record_numbers, trained)))
    else:
        batch.output(np.column_stack([batch.record_numbers, trained]).astype(np.float16))


def say_when_waiting(thread):
    with open(__file__, encoding="utf-8") as file:
        line = [number for number, text in enumerate(file, 1) if text.endswith("# WAITS\n")][0]
    while sys._current_frames()[thread].f_lineno != line:
        time.sleep(0.02)
    write("waiting", "")


def misuse(session):
    """MODE misuse: every wrong argument, and a fork; all in one minibatch."""
    model = Linear(session)
    for batch in session.batches(model.parse):
        with batch:
            if batch.step == 0 and not batch.evaluate and FIRST_START:
                write("misuse", "\n".join(misused(session, model, batch)))
                write("fork", in_child(batch, model, session))
                assert subprocess.run([sys.executable, "-c", ""], check=False).returncode == 0
            model.run(batch)


def misused(session, model, batch):
    keys, floats = np.arange(6, dtype=np.uint64), np.zeros((6, 1), np.float32)
    wrong = [
        lambda: batch.pull(model.rows, [1, 2]),
        lambda: batch.pull(model.rows, keys.astype(np.int64)),
        lambda: batch.need(model.rows, keys[::2]),
        lambda: batch.push(model.rows, keys, floats[:5]),
        lambda: batch.push(model.rows, keys, floats.astype(np.float64)),
        lambda: batch.push(model.rows, keys.reshape(2, 3), floats),
        lambda: batch.push(model.weights, np.zeros((3, 1), np.float32)),
        lambda: batch.auc("x", np.zeros((2, 2), np.float32), np.zeros(4, bool)),
        lambda: batch.auc("x", np.zeros(2, np.float32), np.zeros(3, bool)),
        lambda: batch.auc("x", np.zeros(2, np.float32), np.zeros(2, np.int64)),
        lambda: batch.reject(10**6, "none"),
        lambda: session.table("wide", 0),
        lambda: session.dense("flat", (3, 0)),
    ]
    texts = [with_error(call, Exception) for call in wrong]
    rows = batch.pull(model.rows, keys.reshape(2, 3))
    assert rows.shape == (2, 3, 1) and not rows.flags.writeable
    assert batch.pull(model.rows, keys[:0]).shape == (0, 1)
    texts.append(with_error(lambda: rows.fill(1), ValueError))
    elsewhere = []
    thread = threading.Thread(target=lambda: elsewhere.append(with_error(lambda: batch.pull(model.weights), Exception)))
    thread.start()
    thread.join()
    session.check()
    return texts + elsewhere


def in_child(batch, model, session):
    """What calls say in a forked child, which then ends as Python ends."""
    read, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        calls = (lambda: batch.pull(model.weights), session.check, batch.commit, lambda: next(session.batches()), muster.connect)
        os.write(write_end, "\n".join(with_error(call, Exception) for call in calls).encode())
        sys.exit(0)
    os.close(write_end)
    with os.fdopen(read, "rb") as file:
        said = file.read().decode()
    assert os.waitpid(child, 0)[1] == 0
    return said


def main():
    modes = {
        "count": count, "learn": learn, "parse": fail, "raise": fail, "hooks": hooks, "pool": pool, "pool-raise": pool,
        "leave": leave, "wait": wait_for_server, "close": wait_for_server, "misuse": misuse,
    }
    session = muster.connect()
    modes[MODE](session)
    if MODE not in ("count", "learn"):
        sys.exit(session.finish())


if __name__ == "__main__":
    main()
