"""Tables of the servers in TensorFlow: the rows of a minibatch are one variable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from .. import _muster
from .._arrays import Floats, Keys
from .._lookups import PulledRows, check_features, check_lookup, check_table, share_rows
from . import _arrays
from ._leaves import Gradient, register


class Bags(NamedTuple):
    """The keys of one feature, and how they make bags; see `EmbeddingBag.need`."""

    keys: Any
    offsets: Any = None


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


class Lookup:
    """Which rows of a table a minibatch needs, and where. need() makes it in `parse`; in the loop, it goes into its table.

    Equal keys share a row: `rows` has each key once. It can be used until its minibatch is committed, on the loop's thread.
    """

    def __init__(self, pulled: _Pulled, positions: npt.NDArray[np.intp], offsets: npt.NDArray[np.int64] | None = None) -> None:
        """Use need()."""
        self._pulled = pulled
        self._positions = positions
        self._offsets = offsets

    @property
    def table(self) -> str:
        """The name of the table."""
        return self._pulled.table.name

    @property
    def keys(self) -> npt.NDArray[np.uint64]:
        """Each key once, uint64, ascending: `keys[positions]` are those that need() got."""
        return self._pulled.keys

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


class _Embedding:
    """What both have."""

    def __init__(self, table: _muster.Table) -> None:
        check_table(table)
        self.table = table

    def _lookups(self, batch: _muster.Batch, features: Mapping[str, tuple[Keys, npt.NDArray[np.int64] | None]]) -> dict[str, Lookup]:
        """Lookups that share their rows."""
        unique, positions = share_rows([keys for keys, _ in features.values()])
        pulled = _Pulled(batch, self.table, unique)
        return {name: Lookup(pulled, own, offsets) for own, (name, (_, offsets)) in zip(positions, features.items(), strict=True)}

    def _again(self, batch: _muster.Batch, other: Lookup) -> Lookup:
        """A lookup of the same keys in this table."""
        return Lookup(_Pulled(batch, self.table, other.keys), other._positions, other._offsets)

    def _members(self, lookup: Lookup) -> tf.Tensor:
        """The row of each key: [*the shape of the keys, dim]."""
        check_lookup(lookup, lookup._pulled.table if isinstance(lookup, Lookup) else None, self.table)
        return tf.gather(lookup.rows, lookup.positions)


class EmbeddingTable(_Embedding):
    """A row for each key, like `keras.layers.Embedding`: keys of any shape give that shape and one more dimension of the table's dim.

        users = muster.tensorflow.EmbeddingTable(session.table("user", dim=16, optimizer=muster.Adagrad(0.05)))
        lookup = users.need(batch, keys)    # in `parse`
        vectors = users(lookup)             # in the loop, under a tf.GradientTape

    It is no layer of Keras: what it returns goes into the model. Give the gradients to `apply_gradients()`. All rows that need()
    asked for take a step, also with a gradient of 0. The result is float32; the policy of a layer that takes it may cast it.
    """

    def __init__(self, table: _muster.Table) -> None:
        """`table` is what `session.table()` returns; TypeError if it is something else."""
        super().__init__(table)

    def need(self, batch: _muster.Batch, keys: Any) -> Lookup:
        """Asks for rows ahead of time; call it in `parse`.

        `keys` are uint64 or another kind of whole number, none below 0: an array or a tensor of any shape. Or a Lookup of another
        table, whose keys are used again. Each call has rows of its own; see need_features(). Raises TypeError or ValueError if
        keys are wrong.
        """
        if isinstance(keys, Lookup):
            return self._again(batch, keys)
        return self._lookups(batch, {"": (_arrays.keys_of(keys, "keys"), None)})[""]

    def need_features(self, batch: _muster.Batch, features: Mapping[str, Any]) -> dict[str, Lookup]:
        """The same for several features of one table, by name: all share their rows, so a row has one gradient."""
        checked = {name: (_arrays.keys_of(keys, f"features[{name!r}]"), None) for name, keys in check_features(features).items()}
        return self._lookups(batch, checked)

    def __call__(self, lookup: Lookup) -> tf.Tensor:
        """The rows: [*the shape of the keys, dim], float32. Waits until they have arrived."""
        return self._members(lookup)


class EmbeddingBag(_Embedding):
    """The sum or the mean of rows for each bag of keys, like `tf.nn.embedding_lookup_sparse`. What EmbeddingTable says holds here too.

    `mode` is "sum", "mean", or "sqrtn": the sum, divided by the square root of the bag's size. An empty bag gives 0.
    """

    def __init__(self, table: _muster.Table, *, mode: Literal["sum", "mean", "sqrtn"] = "sum") -> None:
        """`table` is what `session.table()` returns. Raises TypeError or ValueError if an argument is something else."""
        super().__init__(table)
        if mode not in ("sum", "mean", "sqrtn"):
            raise ValueError(f'mode: {mode!r} came, "sum", "mean" or "sqrtn" is allowed')
        self.mode = mode

    def need(self, batch: _muster.Batch, keys: Any, offsets: Any = None) -> Lookup:
        """Asks for rows ahead of time; call it in `parse`.

        `keys` of shape [..., n] are bags of n, and give [..., dim]. With `offsets`, `keys` have one dimension, and bag i begins at
        offsets[i]: whole numbers that begin with 0 and do not decrease. A `tf.RaggedTensor` with one ragged dimension and a
        `tf.SparseTensor` of two dimensions have a bag in each row, and give [rows, dim]. A Lookup of another table has its bags.
        Raises TypeError or ValueError if something is wrong.
        """
        if isinstance(keys, Lookup):
            if offsets is not None:
                raise ValueError("keys: a Lookup has its own offsets: leave them out")
            return self._again(batch, keys)
        return self._lookups(batch, {"": _bags(Bags(keys, offsets), "")})[""]

    def need_features(self, batch: _muster.Batch, features: Mapping[str, Any]) -> dict[str, Lookup]:
        """The same for several features of one table, by name: all share their rows, so a row has one gradient.

        A value is `Bags(keys, offsets)`, or keys alone.
        """
        checked = {}
        for name, value in check_features(features).items():
            checked[name] = _bags(value if isinstance(value, Bags) else Bags(value), f"features[{name!r}].")
        return self._lookups(batch, checked)

    def __call__(self, lookup: Lookup) -> tf.Tensor:
        """The bags: [..., dim], float32. Waits until the rows have arrived."""
        members, offsets = self._members(lookup), lookup._offsets
        if offsets is None:
            size = lookup._positions.shape[-1]
            return self._scaled(tf.reduce_sum(members, axis=-2), np.array([size]))
        sizes = np.diff(offsets)
        sums = tf.math.unsorted_segment_sum(members, np.repeat(np.arange(sizes.size), sizes), sizes.size)
        return self._scaled(sums, sizes[:, np.newaxis])

    def _scaled(self, sums: tf.Tensor, sizes: npt.NDArray[Any]) -> tf.Tensor:
        """What the mode makes of sums over bags of these sizes."""
        if self.mode == "sum":
            return sums
        members = np.maximum(sizes, 1).astype(np.float32)  # the sum of an empty bag is 0 already
        return sums / (members if self.mode == "mean" else np.sqrt(members))


def _bags(bags: Bags, name: str) -> tuple[Keys, npt.NDArray[np.int64] | None]:
    """Keys and offsets, checked; the offsets have one element more than there are bags."""
    keys, offsets = bags
    if isinstance(keys, (tf.RaggedTensor, tf.SparseTensor)):
        if offsets is not None:
            raise ValueError(f"{name}keys: a {type(keys).__name__} has its own bags: leave the offsets out")
        return _ragged(keys, name) if isinstance(keys, tf.RaggedTensor) else _sparse(keys, name)
    array = _arrays.keys_of(keys, f"{name}keys")
    if array.ndim == 0:
        raise ValueError(f"{name}keys: shape () came, at least one dimension is needed")
    if offsets is None:
        if array.ndim == 1:
            raise ValueError(f"{name}offsets: keys of one dimension need them: give offsets, or keys of shape [bags, n]")
        return array, None
    if array.ndim != 1:
        raise ValueError(f"{name}keys: shape {array.shape} came, with offsets one dimension is needed")
    return array, _arrays.offsets_of(offsets, f"{name}offsets", array.size)


def _ragged(keys: tf.RaggedTensor, name: str) -> tuple[Keys, npt.NDArray[np.int64]]:
    if keys.shape.rank != 2:
        raise ValueError(f"{name}keys: a RaggedTensor of shape {keys.shape} came, two dimensions are needed, of which the second is ragged")
    return _arrays.keys_of(keys.values, f"{name}keys.values"), np.asarray(keys.row_splits).astype(np.int64)


def _sparse(keys: tf.SparseTensor, name: str) -> tuple[Keys, npt.NDArray[np.int64]]:
    if keys.shape.rank != 2:
        raise ValueError(f"{name}keys: a SparseTensor of shape {keys.shape} came, two dimensions are needed, with a bag in each row")
    rows = np.asarray(keys.indices)[:, 0]
    if np.any(np.diff(rows) < 0):
        raise ValueError(f"{name}keys: the rows of the SparseTensor are not in order: call tf.sparse.reorder({name}keys)")
    sizes = np.bincount(rows, minlength=int(keys.dense_shape[0]))
    return _arrays.keys_of(keys.values, f"{name}keys.values"), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
