"""Which rows a minibatch needs, and their way through it: what the modules of PyTorch and of TensorFlow have in common."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from . import _muster
from ._arrays import Floats, Keys
from .errors import FailedPrecondition

Leaf = TypeVar("Leaf")


class PulledRows(Generic[Leaf]):
    """Rows of one need(): pulled when they are first used, and over when the minibatch is committed."""

    def __init__(self, batch: _muster.Batch, table: _muster.Table, keys: Keys) -> None:
        self.table = table
        self.keys = keys
        batch.need(table, keys)
        # No cycle: rows should go when the loop leaves the minibatch, and not when the collector comes.
        self.batch = weakref.ref(batch)
        self._leaf: Leaf | None = None
        self._over = False

    def make_leaf(self, pulled: Floats, batch: _muster.Batch) -> Leaf:
        """The rows as the framework has them, with a gradient, unless the minibatch is one of an evaluation. It sees to their push."""
        raise NotImplementedError

    def rows(self) -> Leaf:
        """Waits until they have arrived. Raises FailedPrecondition if the minibatch is over."""
        if self._leaf is None:
            batch = self.batch()
            if batch is None or self._over:
                raise FailedPrecondition(
                    f'the minibatch of this lookup in table "{self.table.name}" is over: use it before `with batch:` ends, and call need() '
                    "again for another minibatch"
                )
            self._leaf = self.make_leaf(batch.pull(self.table, self.keys), batch)
        return self._leaf

    def take(self) -> Leaf | None:
        """The rows, for the last time: the minibatch is over. None if they were not used."""
        leaf, self._leaf, self._over = self._leaf, None, True
        return leaf


def check_table(table: object) -> None:
    """Raises TypeError if it is not what session.table() returns."""
    if not isinstance(table, _muster.Table):
        raise TypeError(f"table: a {type(table).__name__} came, what session.table() returns is needed")


def check_lookup(lookup: object, of: _muster.Table | None, table: _muster.Table) -> None:
    """Raises if `lookup` is not one, and `of` is None; or if it is a lookup of another table than `table`."""
    if of is None:
        raise TypeError(
            f'lookup: a {type(lookup).__name__} came, and table "{table.name}" takes what need() returned: call need(batch, keys) in '
            "`parse`, and give its result here"
        )
    if of is not table and of.name != table.name:
        raise ValueError(f'lookup: it is of table "{of.name}", and this is table "{table.name}": call need() of this one in `parse` as well')


def check_features(features: Mapping[str, Any]) -> Mapping[str, Any]:
    """The argument of need_features(). Raises TypeError if it is no mapping with something in it."""
    if not isinstance(features, Mapping) or not features:
        what = f"a {type(features).__name__}" if features else f"an empty {type(features).__name__}"
        raise TypeError(f"features: {what} came, a mapping from at least one name to keys is needed")
    return features


def share_rows(features: Sequence[Keys]) -> tuple[Keys, list[npt.NDArray[np.intp]]]:
    """Each key of all features once, ascending; and for each feature, in its shape, the positions of its keys among them."""
    parts = [keys.ravel() for keys in features]
    unique, positions = np.unique(np.concatenate(parts) if len(parts) != 1 else parts[0], return_inverse=True)
    ends = np.cumsum([keys.size for keys in features])
    return unique, [positions[end - keys.size : end].reshape(keys.shape) for keys, end in zip(features, ends, strict=True)]
