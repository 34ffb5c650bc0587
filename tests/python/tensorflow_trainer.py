"""The worker of tensorflow_test.py. tensorflow_trainer.py MODE FOLDER"""

import os
import sys
import threading

import keras
import numpy as np
import tensorflow as tf

import muster
import muster.tensorflow
from muster.tensorflow import _dense

MODE, FOLDER = sys.argv[1:]
KEYS, DIM = 12, 4


def write(name, text):
    """Others see all of the text or nothing."""
    path = os.path.join(FOLDER, name)
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(path + ".part", path)


def said_by(call, kind=Exception):
    try:
        call()
    except kind as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError(f"no {kind.__name__}")


def once(name):
    """True in one minibatch of the job."""
    if os.path.exists(os.path.join(FOLDER, name)):
        return False
    write(name, "")
    return True


class Learner:
    """MODE learn: y = model(a, b) + rows[c], in turns with and without a tf.function."""

    def __init__(self, session):
        self.rows = muster.tensorflow.EmbeddingTable(session.table("rows", dim=1, optimizer=muster.Adagrad(0.5)))
        self.model = keras.Sequential(
            [
                keras.Input((2,)),
                keras.layers.BatchNormalization(name="norm"),
                keras.layers.Dense(8, activation="relu", name="hidden"),
                keras.layers.Dropout(0.01),
                keras.layers.Dense(1, name="output"),
            ]
        )
        self.dense = muster.tensorflow.dense(session, self.model, optimizer=muster.Adagrad(0.1), name="network")
        self.traced = 0
        self.compiled = tf.function(self.gradients)

    def parse(self, batch):
        values = np.array([line.split(b",") for line in batch.records]).astype(np.float32)
        self.dense.need(batch)
        return values[:, :2], self.rows.need(batch, values[:, 2].astype(np.int64)), values[:, 3]

    def gradients(self, rows, positions, numbers, labels):
        """Of a minibatch, in a graph."""
        self.traced += 1
        with tf.GradientTape() as tape:
            own = tf.gather(rows, positions)
            loss = self.loss(self.model(numbers, training=True) + own, labels)
        return loss, own, tape.gradient(loss, [rows, *self.model.trainable_variables])

    def loss(self, outputs, labels):
        return tf.reduce_mean((outputs[:, 0] - labels) ** 2)

    def run(self, batch):
        numbers, lookup, labels = batch.data
        if batch.evaluate:
            loss = self.loss(self.model(numbers, training=False) + self.rows(lookup), labels)
            self.check(batch)
        elif batch.step % 2:
            loss, own, gradients = self.compiled(lookup.rows, lookup.positions, numbers, labels)
            assert np.array_equal(own, self.rows(lookup)), "the rows of this minibatch, and not of the one that was traced"
            muster.tensorflow.apply_gradients(batch, zip(gradients, [lookup.rows, *self.model.trainable_variables]))
        else:
            with tf.GradientTape() as tape:
                loss = self.loss(self.model(numbers, training=True) + self.rows(lookup), labels)
            leaves = muster.tensorflow.leaves(batch)
            gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, leaves), 10.0)
            muster.tensorflow.apply_gradients(batch, zip(gradients, leaves))
        batch.metric("loss", float(loss), len(labels))

    def check(self, batch):
        """The model is what the servers have, and a tf.function is traced once for all minibatches of a size."""
        own = {weight.path.partition("/")[2]: weight.numpy() for weight in self.model.weights}
        tensors = self.dense.tensors()
        assert own.keys() == tensors.keys(), (own.keys(), tensors.keys())
        for name, tensor in tensors.items():
            assert np.array_equal(batch.pull(tensor), own[name]), name
        assert tensors["hidden/kernel"].name == "network-hidden-kernel"
        assert not np.array_equal(own["norm/moving_variance"], [1, 1]), "statistics are pushed"
        write("traced", str(self.traced))


class Counter(tf.Module):
    """A module without Keras."""

    def __init__(self):
        super().__init__(name="counter")
        self.weight = tf.Variable(tf.ones([3]), name="weight")
        self.count = tf.Variable(0.0, trainable=False, name="count")
        self.frozen = tf.Variable([1.0, 2.0], trainable=False, name="frozen")


class Shapeless(tf.Module):
    """Its variable may get another shape."""

    def __init__(self):
        super().__init__()
        self.weight = tf.Variable(tf.zeros([2]), shape=[None], name="weight")


class Checker:
    """MODE check: gradients that do not depend on the rows, beside those of TensorFlow for the same keys. All numbers are exact."""

    def __init__(self, session):
        self.session = session
        self.table = session.table("rows", dim=DIM, optimizer=muster.Sum(), initializer=muster.Constant(3))
        self.rows = muster.tensorflow.EmbeddingTable(self.table)
        self.bags = {mode: muster.tensorflow.EmbeddingBag(self.table, mode=mode) for mode in ("sum", "mean", "sqrtn")}
        self.other = muster.tensorflow.EmbeddingTable(session.table("other", dim=DIM))
        self.counter = Counter()
        self.dense = muster.tensorflow.dense(session, self.counter, optimizer=muster.Sum())
        self.weight = tf.Variable(tf.fill((KEYS, DIM), 3.0))
        self.sum = np.zeros((KEYS, DIM), np.float32)
        self.minibatches = 0
        self.first = None

    def parse(self, batch):
        if not batch.evaluate and once("misuse-began"):
            write("misuse", "\n".join(self.in_parse(batch)))
        random = np.random.default_rng(batch.seed)
        keys = random.integers(0, KEYS, 24)
        starts = np.array([0, 4, 4, 20])  # bags of 4, 0, 16 and 4
        fixed, ragged = keys.reshape(2, 3, 4), tf.RaggedTensor.from_row_starts(keys, starts)
        # Powers of 4, so that sums and roots are exact in every bag: all of a bag are the same.
        weights = np.repeat(np.array([1, 4, 16], np.float32), [4, 16, 4])
        bag, mean, root = self.bags["sum"], self.bags["mean"], self.bags["sqrtn"]
        needed = {
            "table": (self.rows, self.rows.need(batch, tf.constant(keys.reshape(4, 6)))),
            "starts": (bag, bag.need(batch, keys, starts)),
            "fixed": (mean, mean.need(batch, fixed.astype(np.uint64))),
            "ragged": (root, root.need(batch, ragged)),
            "sparse": (mean, mean.need(batch, sparse_of(keys, starts))),
            "none": (mean, mean.need(batch, keys[:0].reshape(5, 0))),
        }
        needed |= {name: (bag, lookup) for name, lookup in bag.need_features(batch, {"x": fixed, "y": muster.tensorflow.Bags(keys, starts)}).items()}
        needed |= {
            "weighted sum": (bag, bag.need(batch, keys, starts, weights)),
            "weighted mean": (mean, mean.need(batch, ragged, weights=tf.RaggedTensor.from_row_starts(weights, starts))),
            "weighted root": (root, root.need(batch, sparse_of(keys, starts), weights=tf.constant(weights))),
            "weighted rows": (mean, mean.need(batch, fixed, weights=weights.reshape(2, 3, 4))),
        }
        needed["again"] = (self.rows, self.rows.need(batch, needed["table"][1]))
        pooled = tf.nn.embedding_lookup_sparse
        wanted = {
            "table": lambda w: tf.nn.embedding_lookup(w, keys.reshape(4, 6)),
            "starts": lambda w: pooled(w, sparse_of(keys, starts), None, combiner="sum"),
            "fixed": lambda w: tf.reduce_mean(tf.nn.embedding_lookup(w, fixed), axis=2),
            "ragged": lambda w: pooled(w, sparse_of(keys, starts), None, combiner="sqrtn"),
            "sparse": lambda w: pooled(w, sparse_of(keys, starts), None, combiner="mean"),
            "none": lambda w: tf.zeros((5, DIM)),
            "x": lambda w: tf.reduce_sum(tf.nn.embedding_lookup(w, fixed), axis=2),
            "y": lambda w: pooled(w, sparse_of(keys, starts), None, combiner="sum"),
            "weighted sum": lambda w: pooled(w, sparse_of(keys, starts), sparse_of(weights, starts), combiner="sum"),
            "weighted mean": lambda w: pooled(w, sparse_of(keys, starts), sparse_of(weights, starts), combiner="mean"),
            "weighted root": lambda w: pooled(w, sparse_of(keys, starts), sparse_of(weights, starts), combiner="sqrtn"),
            "weighted rows": lambda w: tf.reduce_mean(tf.nn.embedding_lookup(w, fixed), axis=2),
            "again": lambda w: tf.nn.embedding_lookup(w, keys.reshape(4, 6)),
        }
        return needed, wanted

    def run(self, batch):
        needed, wanted = batch.data
        assert needed.keys() == wanted.keys()
        if batch.evaluate:
            self.dense.need(batch)
            self.check(batch, needed, wanted)
            return
        if once("misuse-in-loop-began"):
            write("misuse-in-loop", "\n".join(self.in_loop(batch, needed["table"][1])))
        if self.first is not None:
            write("misuse-later", "\n".join(self.later()))
        self.dense.need(batch)
        if once("changed"):  # it is noticed at the commit, and the worker starts again
            self.counter.weight.assign_add(tf.ones([3]))
        self.counter.count.assign_add(1.0)
        factors = tf.range(1.0, DIM + 1) * 48  # divisible by the sizes of the bags, so that means are exact
        for part in (("table", "starts", "fixed"), tuple(needed.keys() - {"table", "starts", "fixed"})):
            with tf.GradientTape(persistent=True) as tape:
                ours = tf.add_n([tf.reduce_sum(module(lookup) * factors) for module, lookup in (needed[name] for name in part)])
                theirs = tf.add_n([tf.reduce_sum(wanted[name](self.weight) * factors) for name in part])
            leaves = muster.tensorflow.leaves(batch)
            muster.tensorflow.apply_gradients(batch, zip(tape.gradient(ours, leaves), leaves))
            self.sum += np.asarray(tf.convert_to_tensor(tape.gradient(theirs, self.weight)))
        for _ in range(2):  # they are added up
            muster.tensorflow.apply_gradients(batch, [(np.array([1, 2, 3], np.float32), self.counter.weight)])
        self.check_weights(needed)
        assert needed["x"][1].rows is needed["y"][1].rows, "they share their rows"
        self.minibatches += 1
        self.first = needed["table"][1], batch

    def check_weights(self, needed):
        """Weights in the loop count in place of those of need(), and have a gradient, as those of TensorFlow."""
        for mode in ("sum", "mean", "sqrtn"):
            module, lookup = self.bags[mode], needed["weighted sum"][1]
            sizes = np.diff(np.append(np.array([0, 4, 4, 20]), 24))
            weights = tf.Variable(np.arange(1, 25, dtype=np.float32))
            with tf.GradientTape(persistent=True) as tape:
                ours = module(lookup, weights)
                rows = tf.stop_gradient(tf.gather(lookup.rows, lookup.positions))
                parts, own = tf.split(rows * weights[:, tf.newaxis], sizes), tf.split(weights, sizes)
                divisor = {"sum": lambda w: 1.0, "mean": tf.reduce_sum, "sqrtn": lambda w: tf.norm(w)}[mode]
                theirs = tf.stack([tf.reduce_sum(part, 0) / divisor(w) if len(w) else tf.zeros(DIM) for part, w in zip(parts, own)])
            assert np.allclose(ours, theirs, rtol=1e-6), mode
            mine, wanted = tape.gradient(ours, weights), tape.gradient(theirs, weights)
            assert np.allclose(mine, wanted, rtol=1e-4, atol=1e-6), mode

    def check(self, batch, needed, wanted):
        rows = batch.pull(self.table, np.arange(KEYS, dtype=np.uint64))
        assert np.array_equal(rows, 3 + self.sum), "the gradients that were pushed are those of TensorFlow"
        for name, (module, lookup) in needed.items():
            assert np.array_equal(module(lookup), wanted[name](tf.constant(rows))), name
        assert np.array_equal(self.counter.weight, 1 + 2 * self.minibatches * np.array([1, 2, 3])), self.counter.weight
        assert "frozen" not in self.dense.tensors()
        write("checked", f"{self.minibatches} {int(self.counter.count)}")
        write("misuse-evaluate", said_by(lambda: muster.tensorflow.leaves(batch)))

    def in_parse(self, batch):
        keys, need, bags, dense = np.arange(6), self.rows.need, self.bags["sum"].need, muster.tensorflow.dense
        ragged = tf.RaggedTensor.from_row_lengths(keys, [2, 4])
        layers = keras.layers
        wide, odd = layers.Dense(1, dtype="float64"), layers.Dense(8, kernel_initializer="orthogonal")
        for layer in (wide, odd):
            layer.build((None, 8))
        deep = keras.Sequential([keras.Input((1,)), layers.Dense(1, name="x" * 60)])
        twins = keras.Sequential([keras.Input((1,)), layers.Dense(1, name="a"), layers.Dense(1, name="A")])
        return [
            said_by(call)
            for call in (
                lambda: need(batch, [1, 2]),
                lambda: need(batch, tf.ones(2)),
                lambda: need(batch, tf.constant([[1, 2], [-3, 4]])),
                lambda: need(batch, ragged),
                lambda: self.rows.need_features(batch, {"user": keys, "item": -keys}),
                lambda: self.rows.need_features(batch, {}),
                lambda: bags(batch, keys),
                lambda: bags(batch, np.array(3)),
                lambda: bags(batch, keys, np.array([1, 4])),
                lambda: bags(batch, keys.reshape(2, 3), np.array([0, 4])),
                lambda: bags(batch, ragged, np.array([0, 4])),
                lambda: bags(batch, self.rows.need(batch, keys), np.array([0, 4])),
                lambda: bags(batch, tf.RaggedTensor.from_row_lengths(ragged, [1, 1])),
                lambda: bags(batch, keys.reshape(2, 3), weights=[1.0]),
                lambda: bags(batch, keys.reshape(2, 3), weights=np.ones((2, 3))),
                lambda: bags(batch, ragged, weights=tf.ones(5)),
                lambda: bags(batch, tf.SparseTensor([[1, 0], [0, 0]], tf.constant([1, 2], tf.int64), [2, 1])),
                lambda: bags(batch, tf.SparseTensor([[0]], tf.constant([1], tf.int64), [2])),
                lambda: muster.tensorflow.EmbeddingBag(self.table, mode="max"),
                lambda: muster.tensorflow.EmbeddingTable("rows"),
                lambda: dense(self.session, "network"),
                lambda: dense(self.session, keras.Sequential([layers.Dense(1)]), name="none"),
                lambda: dense(self.session, wide, name="wide"),
                lambda: dense(self.session, odd, name="odd"),
                lambda: dense(self.session, Shapeless(), name="shapeless", initializers={"*": muster.Zero()}),
                lambda: other_backend(self.session, odd),
                lambda: dense(self.session, deep, name="deep"),
                lambda: dense(self.session, twins, name="twins", initializers={"*kernel": muster.Zero()}),
                lambda: dense(self.session, odd, name="Big", initializers={"*": muster.Zero()}),
                lambda: dense(self.session, odd, name="typing", initializers={"kernle": muster.Zero()}),
            )
        ]

    def in_loop(self, batch, lookup):
        leaves, give, stray = muster.tensorflow.leaves, muster.tensorflow.apply_gradients, tf.Variable(1.0, name="stray")
        texts = [
            said_by(lambda: self.rows(np.arange(3))),
            said_by(lambda: self.other(lookup)),
            said_by(lambda: leaves(batch)),
        ]
        self.rows(lookup)
        return texts + [
            said_by(lambda: give(batch, [(1.0, stray)])),
            said_by(lambda: give(batch, [(tf.ones([1, 1]), leaves(batch)[0])])).replace(f"({len(lookup.keys)}, ", "(KEYS, "),
            said_by(lambda: give(batch, [(None, leaves(batch)[0])])),
            *self.changed(batch),
        ]

    def changed(self, batch):
        """What a dense part says of a frozen variable, of another thread, and of statistics."""
        self.dense.need(batch)
        self.counter.frozen.assign_add([1.0, 1.0])
        texts = [said_by(self.dense._check)]
        self.counter.frozen.assign_sub([1.0, 1.0])
        thread = threading.Thread(target=lambda: texts.append(said_by(lambda: self.dense._begin(batch))))
        thread.start()
        thread.join()
        norm = _dense.Dense(None, "norm", [_dense._Part("a/moving_variance", None, (1,), False, tf.Variable([1.0]))], [])
        return [*texts, said_by(lambda: norm._begin(NegativeBatch()))]

    def later(self):
        lookup, batch = self.first
        return [said_by(lambda: self.rows(lookup)), said_by(lambda: muster.tensorflow.leaves(batch))]


class NegativeBatch:
    """What a dense part uses of a minibatch of an evaluation."""

    evaluate = True

    def pull(self, tensor):
        return np.full(1, -1, np.float32)


def other_backend(session, model):
    """What `dense` says if Keras does not run on TensorFlow."""
    backend = keras.backend.backend
    keras.backend.backend = lambda: "jax"
    try:
        return muster.tensorflow.dense(session, model)
    finally:
        keras.backend.backend = backend


def sparse_of(values, starts):
    """A tf.SparseTensor of keys or weights, with a row for each bag."""
    sizes = np.diff(np.append(starts, len(values)))
    rows = np.repeat(np.arange(len(starts)), sizes)
    columns = np.concatenate([np.arange(size) for size in sizes])
    return tf.SparseTensor(np.stack([rows, columns], 1), tf.constant(values), [len(starts), max(sizes)])


def main():
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    keras.utils.set_random_seed(1)
    with muster.connect() as session:
        worker = {"learn": Learner, "check": Checker}[MODE](session)
        for batch in session.batches(worker.parse):
            with batch:
                worker.run(batch)


if __name__ == "__main__":
    main()
