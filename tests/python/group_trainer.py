"""The member of group_test.py: a linear model in a group, and what a test asks of it besides. group_trainer.py MODE FOLDER"""

import contextlib
import os
import signal
import sys
import threading
import time
import traceback

import numpy as np

import muster

MODE, FOLDER = sys.argv[1:]
NODE = os.environ["MUSTER_NODE"]
# What a mode does besides happens in one process: the first one of worker-1.
PLANTED = NODE == "worker-1" and os.environ.get("MUSTER_START") == "1"


def path(name):
    return os.path.join(FOLDER, name)


def write(name, text):
    """Others see all of the text or nothing."""
    with open(path(name) + ".part", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(path(name) + ".part", path(name))


def once(name):
    """True the first time."""
    if os.path.exists(path(name)):
        return False
    write(name, "")
    return True


def with_error(call, kind):
    try:
        call()
    except kind as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError(f"no {kind.__name__}")


def parse(batch):
    values = np.array([line.split(b",") for line in batch.records]).astype(np.float32)
    inputs = np.hstack([values[:, :2], np.ones((len(values), 1), np.float32)])
    return inputs, values[:, 3] - values[:, 2]


class Linear:
    """y = weights @ (a, b, 1) + c, with momentum."""

    def __init__(self, group):
        self.group = group
        self.gradients = group.add_bucket("gradients", 3)
        self.weights, self.momentum = np.zeros(3, np.float32), np.zeros((3, 1), np.float64)
        self.steps, self.half = np.zeros(1, np.int64), np.zeros((2, 2), np.float16)
        for name in ("weights", "momentum", "steps", "half"):
            group.add_state(name, getattr(self, name))

    def run(self, step, batch):
        inputs, labels = batch.data
        error = inputs @ self.weights - labels
        batch.metric("loss", (error**2).mean(), len(labels))
        if not step.evaluate:
            step.add(self.gradients, error @ inputs)

    def apply(self, step):
        mean = step.sum(self.gradients) / np.float32(step.records)
        self.momentum[:, 0] = 0.9 * self.momentum[:, 0] + mean
        self.weights -= (0.1 * self.momentum[:, 0]).astype(np.float32)
        self.half[:] = self.weights[0]
        self.steps += 1

    def text(self):
        return " ".join(getattr(self, name).tobytes().hex() for name in ("weights", "momentum", "steps", "half"))


def learn(session):
    """MODE learn, kill, raise, end, apply: trains; worker-1 has its accident."""
    group = session.group()
    model = Linear(group)
    kept, copied = [], []

    def apply():
        sum = step.sum(model.gradients)
        out = np.empty((3, 1), np.float32)
        assert step.sum(model.gradients, out) is out and np.array_equal(out[:, 0], sum)
        kept.append((sum, sum.copy()))
        if MODE == "apply" and PLANTED and step.step == 3:
            model.weights += 1
            raise RuntimeError("planted in apply")
        model.apply(step)

    for step in group.steps():
        copied.append(step.state_copied)
        for batch in step.batches(parse):
            # An exception that nobody catches ends the process.
            with contextlib.suppress(ValueError) if MODE == "raise" else contextlib.nullcontext(), batch:
                if PLANTED and step.step == 3 and MODE in ("raise", "end") and once("raised"):
                    raise ValueError("planted in the loop")
                model.run(step, batch)
                if PLANTED and step.step == 3 and MODE == "kill":
                    write("killed", "")
                    os.kill(os.getpid(), signal.SIGKILL)
        try:
            step.commit(apply)
        except RuntimeError as error:
            write("raised", f"{error} {step.step}")
            copied.clear()
    assert all(np.array_equal(array, then) for array, then in kept), "a kept sum has changed"
    if group.has_final_state():
        write(f"weights-{NODE}", model.text())
    write(f"copied-{NODE}", str(sum(copied)))


def wait(session):
    """MODE wait: worker-1 waits in commit() for worker-0, until a signal comes."""
    group = session.group()
    model = Linear(group)
    for step in group.steps():
        for batch in step.batches(parse):
            if NODE == "worker-0" and once("holds"):
                while not os.path.exists(path("go")):
                    time.sleep(0.02)
            model.run(step, batch)
        if PLANTED and step.step == 1:
            threading.Thread(target=say_when_waiting, args=(threading.get_ident(),), daemon=True).start()
        step.commit(lambda: model.apply(step))  # WAITS
    if group.has_final_state():
        write(f"weights-{NODE}", model.text())


def local(session):
    """MODE local: each member trains alone in a step, and the step brings the weights together."""
    weights, mean, steps = np.zeros(3, np.float32), np.zeros(1, np.float32), np.zeros(1, np.int64)
    group = session.group()
    group.add_state("steps", steps)
    model = muster.DiLoCo(group, outer=muster.OuterNesterov(0.9, momentum=0.1))
    model.add_weights("weights", weights)
    model.add_mean("mean", mean)
    for step in model.steps():
        for batch in step.batches(parse):
            with batch:
                inputs, labels = batch.data
                error = inputs @ weights - labels
                batch.metric("loss", (error**2).mean(), len(labels))
                if not step.evaluate:
                    weights -= 0.3 * (error @ inputs) / np.float32(len(labels))
        mean[:] = weights[0]
        step.commit(lambda: steps.__iadd__(1))
    assert steps[0] == 15, steps
    if group.has_final_state():
        write(f"weights-{NODE}", " ".join(values.tobytes().hex() for values in (weights, mean, steps)))


def say_when_waiting(thread):
    with open(__file__, encoding="utf-8") as file:
        line = [number for number, text in enumerate(file, 1) if text.endswith("# WAITS\n")][0]
    while not any(frame.f_lineno == line for frame, _ in traceback.walk_stack(sys._current_frames()[thread])):
        time.sleep(0.02)
    write("waiting", str(os.getpid()))


def misuse(session):
    """MODE misuse: every wrong argument; all in one step."""
    group = session.group()
    model = Linear(group)
    frozen = np.zeros(3, np.float32)
    frozen.flags.writeable = False
    said = [
        with_error(lambda: group.add_state("frozen", frozen), ValueError),
        with_error(lambda: group.add_state("list", [1.0]), TypeError),
        with_error(lambda: group.add_state("order", np.zeros((3, 3)).T[:2]), ValueError),
        with_error(lambda: group.add_bucket("none", 0), ValueError),
        with_error(lambda: group.add_bucket("float8", 1, type="float8"), ValueError),
        with_error(lambda: group.add_bucket("bits", 1, fraction_bits=41), ValueError),
        with_error(session.group, muster.FailedPrecondition),
    ]
    for step in group.steps():
        for batch in step.batches(parse):
            with batch:
                if step.step == 1 and len(said) == 7:
                    said += misused(group, model, step)
                    write("fork", in_child(group, model, step))
                model.run(step, batch)
        old = step
        if step.step == 1:
            step.commit(lambda: said.append(with_error(lambda: step.commit(), muster.FailedPrecondition)) or model.apply(step))
        else:
            step.commit(lambda: model.apply(step))
    said.append(with_error(lambda: old.add(model.gradients, np.zeros(3, np.float32)), muster.FailedPrecondition))
    group.close()
    said.append(with_error(lambda: next(group.steps()), muster.FailedPrecondition))
    write("misuse", "\n".join(said))


def misused(group, model, step):
    floats = np.zeros(3, np.float32)
    elsewhere = []
    thread = threading.Thread(target=lambda: elsewhere.append(with_error(lambda: step.commit(), muster.FailedPrecondition)))
    thread.start()
    thread.join()
    return [
        with_error(lambda: step.add(model.gradients, floats[:2]), ValueError),
        with_error(lambda: step.add(model.gradients, floats.astype(np.float16)), TypeError),
        with_error(lambda: step.add(model.gradients, np.zeros(6, np.float32)[::2]), ValueError),
        with_error(lambda: step.sum(model.gradients), muster.FailedPrecondition),
        with_error(lambda: next(step.batches()), muster.FailedPrecondition),
    ] + elsewhere


def in_child(group, model, step):
    """What calls say in a forked child, which then ends as Python ends."""
    read, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        calls = (
            lambda: step.add(model.gradients, np.zeros(3, np.float32)),
            lambda: step.commit(lambda: None),
            lambda: step.fail("no"),
            lambda: group.add_bucket("more", 1),
            group.has_final_state,
        )
        os.write(write_end, "\n".join(with_error(call, Exception) for call in calls).encode())
        sys.exit(0)
    os.close(write_end)
    with os.fdopen(read, "rb") as file:
        said = file.read().decode()
    assert os.waitpid(child, 0)[1] == 0
    return said


def main():
    modes = {"learn": learn, "kill": learn, "raise": learn, "end": learn, "apply": learn, "local": local, "wait": wait, "misuse": misuse}
    session = muster.connect()
    modes[MODE](session)
    sys.exit(session.finish())


if __name__ == "__main__":
    main()
