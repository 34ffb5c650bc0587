"""Tables of the servers in TensorFlow: the rows of a minibatch are one variable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from .. import _muster
from .._arrays import Floats, Keys
from .._lookups import BaseEmbedding, BaseLookup, CheckedFeature, PulledRows, check_bags, check_table, prefix_of
from . import _arrays
from ._leaves import Gradient, register


class Bags(NamedTuple):
    """The keys of one feature, and how they make bags; see `EmbeddingBag.need`."""

    keys: Any
    offsets: Any = None
    weights: Any = None


class _Pulled(PulledRows[Any]):
    """Rows as a variable. Its shape is [None, dim], so that a tf.function that takes it is traced once."""

    _gradient: Gradient | None = None

    def make_leaf(self, pulled: Floats, batch: _muster.Batch) -> tf.Variable:
        batch.on_commit(self._push)
        leaf = tf.Variable(pulled, trainable=not batch.evaluate, shape=tf.TensorShape([None, self.table.dim]), dtype=tf.float32)
        if not batch.evaluate:
            self._gradient = register(batch, f'rows of table "{self.table.name}"', leaf, pulled.shape)
        return leaf

    def _push(self) -> None:
        batch, leaf = self.batch(), self.take()
        gradient = self._gradient.take() if self._gradient is not None else None
        if batch is not None and leaf is not None and gradient is not None:
            batch.push(self.table, self.keys, gradient)


class Lookup(BaseLookup[tf.Variable]):
    """Which rows of a table a minibatch needs, and where. need() makes it in `parse`; in the loop, it goes into its table.

    Equal keys share a row: `rows` has each key once. It can be used until its minibatch is committed, on the loop's thread.
    """

    @property
    def positions(self) -> tf.Tensor:
        """int64, in the shape of the keys: which of `rows` each key has. For a tf.function: `tf.gather(rows, positions)`."""
        return tf.constant(self._positions, tf.int64)

    @property
    def rows(self) -> tf.Variable:
        """[len(keys), dim], float32: a leaf, whose gradient is pushed. Pulls them if the table was not called yet. Do not write to it.

        Its static shape is [None, dim]: a tf.function that takes it as an argument is not traced again for each minibatch.
        """
        return self._pulled.rows()


class _Embedding(BaseEmbedding[Lookup]):
    """What both have."""

    def __init__(self, table: _muster.Table) -> None:
        """`table` is what `session.table()` returns; TypeError if it is something else."""
        check_table(table)
        self.table = table

    def _pull(self, batch: _muster.Batch, keys: Keys) -> _Pulled:
        return _Pulled(batch, self.table, keys)

    def _lookup(self, pulled: PulledRows[Any], positions: npt.NDArray[np.intp], feature: CheckedFeature) -> Lookup:
        return Lookup(pulled, positions, feature)

    def _members(self, lookup: Lookup) -> tf.Tensor:
        """The row of each key: [*the shape of the keys, dim]."""
        self._check_lookup(lookup)
        return tf.gather(lookup.rows, lookup.positions)


class EmbeddingTable(_Embedding):
    """A row for each key, like `keras.layers.Embedding`: keys of any shape give that shape and one more dimension of the table's dim.

        users = muster.tensorflow.EmbeddingTable(session.table("user", dim=16, optimizer=muster.Adagrad(0.05)))
        lookup = users.need(batch, keys)    # in `parse`
        vectors = users(lookup)             # in the loop, under a tf.GradientTape

    It is no layer of Keras: what it returns goes into the model. Give the gradients to `apply_gradients()`. All rows that need()
    asked for take a step, also with a gradient of 0. The result is float32; the policy of a layer that takes it may cast it.
    """

    def need(self, batch: _muster.Batch, keys: Any) -> Lookup:
        """Asks for rows ahead of time; call it in `parse`.

        `keys` are uint64 or another kind of whole number, none below 0: an array or a tensor of any shape. Or a Lookup of another
        table, whose keys are used again. Each call has rows of its own; see need_features(). Raises TypeError or ValueError if
        keys are wrong.
        """
        return self._again(batch, keys) if isinstance(keys, Lookup) else self._need(batch, keys)

    def need_features(self, batch: _muster.Batch, features: Mapping[str, Any]) -> dict[str, Lookup]:
        """The same for several features of one table, by name: all share their rows, so a row has one gradient."""
        return self._need_features(batch, features)

    def __call__(self, lookup: Lookup) -> tf.Tensor:
        """The rows: [*the shape of the keys, dim], float32. Waits until they have arrived."""
        return self._members(lookup)

    def _check(self, value: Any, name: str) -> CheckedFeature:
        return CheckedFeature(_arrays.keys_of(value, name or "keys"))


class EmbeddingBag(_Embedding):
    """The sum or the mean of rows for each bag of keys, like `tf.nn.embedding_lookup_sparse`. What EmbeddingTable says holds here too.

    `mode` is "sum", "mean", or "sqrtn": the sum, divided by the square root of the bag's size. With weights, each row is multiplied
    by its own; "mean" divides by the sum of the weights, and "sqrtn" by the square root of the sum of their squares. A bag that is
    empty, or whose divisor is 0, gives 0.
    """

    def __init__(self, table: _muster.Table, *, mode: Literal["sum", "mean", "sqrtn"] = "sum") -> None:
        """`table` is what `session.table()` returns. Raises TypeError or ValueError if an argument is something else."""
        super().__init__(table)
        if mode not in ("sum", "mean", "sqrtn"):
            raise ValueError(f'mode: {mode!r} came, "sum", "mean" or "sqrtn" is allowed')
        self.mode = mode

    def need(self, batch: _muster.Batch, keys: Any, offsets: Any = None, weights: Any = None) -> Lookup:
        """Asks for rows ahead of time; call it in `parse`.

        `keys` of shape [..., n] are bags of n, and give [..., dim]. With `offsets`, `keys` have one dimension, and bag i begins at
        offsets[i]: whole numbers that begin with 0 and do not decrease. A `tf.RaggedTensor` with one ragged dimension and a
        `tf.SparseTensor` of two dimensions have a bag in each row, and give [rows, dim]. `weights` are float32, one for each key, in
        the shape of the keys; of a ragged or a sparse tensor, in that of its values, or such a tensor itself. A Lookup of another
        table has its bags and weights. Raises TypeError or ValueError if something is wrong.
        """
        if isinstance(keys, Lookup):
            if offsets is not None or weights is not None:
                raise ValueError("keys: a Lookup has its own offsets and weights: leave them out")
            return self._again(batch, keys)
        return self._need(batch, Bags(keys, offsets, weights))

    def need_features(self, batch: _muster.Batch, features: Mapping[str, Any]) -> dict[str, Lookup]:
        """The same for several features of one table, by name: all share their rows, so a row has one gradient.

        A value is `Bags(keys, offsets, weights)`, or keys alone.
        """
        return self._need_features(batch, features)

    def __call__(self, lookup: Lookup, weights: Any = None) -> tf.Tensor:
        """The bags: [..., dim], float32. Waits until the rows have arrived.

        `weights` are used in place of those of need(); they may have a gradient of their own.
        """
        members = self._members(lookup)
        shape = lookup._positions.shape
        weights = lookup._feature.weights if weights is None else _arrays.weights_of(weights, "weights", shape)
        sums = _sums(lookup, members if weights is None else members * weights[..., tf.newaxis])
        if self.mode == "sum":
            return sums
        if weights is None:
            weights = tf.ones(shape)
        divisors = _sums(lookup, weights if self.mode == "mean" else weights * weights)[..., tf.newaxis]
        return tf.math.divide_no_nan(sums, divisors if self.mode == "mean" else tf.sqrt(divisors))

    def _check(self, value: Any, name: str) -> CheckedFeature:
        return _bags(value if isinstance(value, Bags) else Bags(value), prefix_of(name))


def _sums(lookup: Lookup, values: tf.Tensor) -> tf.Tensor:
    """Of the values of each bag: [*the shape of the keys, ...] gives [..., ...]."""
    offsets = lookup._feature.offsets
    if offsets is None:
        return tf.reduce_sum(values, axis=lookup._positions.ndim - 1)
    sizes = np.diff(offsets)
    return tf.math.unsorted_segment_sum(values, np.repeat(np.arange(sizes.size), sizes), sizes.size)


def _bags(bags: Bags, prefix: str) -> CheckedFeature:
    keys, offsets, weights = bags
    if isinstance(keys, (tf.RaggedTensor, tf.SparseTensor)):
        if offsets is not None:
            raise ValueError(f"{prefix}keys: a {type(keys).__name__} has its own bags: leave the offsets out")
        array, begins = _ragged(keys, prefix) if isinstance(keys, tf.RaggedTensor) else _sparse(keys, prefix)
    else:
        array = _arrays.keys_of(keys, f"{prefix}keys")
        check_bags(array, offsets is not None, prefix)
        begins = None if offsets is None else _arrays.offsets_of(offsets, f"{prefix}offsets", array.size)
    return CheckedFeature(array, begins, None if weights is None else _arrays.weights_of(weights, f"{prefix}weights", array.shape))


def _ragged(keys: tf.RaggedTensor, name: str) -> tuple[Keys, npt.NDArray[np.int64] | None]:
    if keys.shape.rank != 2:
        raise ValueError(f"{name}keys: a RaggedTensor of shape {keys.shape} came, two dimensions are needed, of which the second is ragged")
    return _arrays.keys_of(keys.values, f"{name}keys.values"), np.asarray(keys.row_splits).astype(np.int64)


def _sparse(keys: tf.SparseTensor, name: str) -> tuple[Keys, npt.NDArray[np.int64] | None]:
    if keys.shape.rank != 2:
        raise ValueError(f"{name}keys: a SparseTensor of shape {keys.shape} came, two dimensions are needed, with a bag in each row")
    rows = np.asarray(keys.indices)[:, 0]
    if np.any(np.diff(rows) < 0):
        raise ValueError(f"{name}keys: the rows of the SparseTensor are not in order: call tf.sparse.reorder({name}keys)")
    sizes = np.bincount(rows, minlength=int(keys.dense_shape[0]))
    return _arrays.keys_of(keys.values, f"{name}keys.values"), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
