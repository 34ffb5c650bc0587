"""Which rows a minibatch needs, and their way through it: what the modules of PyTorch and of TensorFlow have in common."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

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


class CheckedFeature(NamedTuple):
    """The keys of one feature, and its bags if it has some."""

    keys: Keys
    offsets: npt.NDArray[np.int64] | None = None  # where each bag begins, and where the last one ends
    weights: Any = None  # of the framework, one for each key
    features: int | None = None  # of TorchRec: it is that many features, whose bags follow each other


class BaseLookup(Generic[Leaf]):
    """Which rows of a table a minibatch needs, and where."""

    def __init__(self, pulled: PulledRows[Leaf], positions: npt.NDArray[np.intp], feature: CheckedFeature) -> None:
        """Use need()."""
        self._pulled = pulled
        self._positions = positions
        self._feature = feature

    @property
    def table(self) -> str:
        """The name of the table."""
        return self._pulled.table.name

    @property
    def keys(self) -> npt.NDArray[np.uint64]:
        """Each key once, uint64, ascending: `keys[positions]` are those that need() got."""
        return self._pulled.keys


AnyLookup = TypeVar("AnyLookup", bound=BaseLookup[Any])


class BaseEmbedding(Generic[AnyLookup]):
    """The rows of one table. It makes lookups, and uses them."""

    table: _muster.Table

    def _pull(self, batch: _muster.Batch, keys: Keys) -> PulledRows[Any]:
        """Rows of a minibatch."""
        raise NotImplementedError

    def _lookup(self, pulled: PulledRows[Any], positions: npt.NDArray[np.intp], feature: CheckedFeature) -> AnyLookup:
        """A lookup in them."""
        raise NotImplementedError

    def _check(self, value: Any, name: str) -> CheckedFeature:
        """What need() got, or need_features() as a value. `name` is for errors: "features['user']"; empty for need()."""
        raise NotImplementedError

    def _need(self, batch: _muster.Batch, value: Any) -> AnyLookup:
        """What need() does with keys."""
        return self._look_up(batch, {"": self._check(value, "")})[""]

    def _need_features(self, batch: _muster.Batch, features: Mapping[str, Any]) -> dict[str, AnyLookup]:
        """What need_features() does. Raises TypeError if its argument is no mapping with something in it."""
        if not isinstance(features, Mapping) or not features:
            what = f"a {type(features).__name__}" if features else f"an empty {type(features).__name__}"
            raise TypeError(f"features: {what} came, a mapping from at least one name to keys is needed")
        return self._look_up(batch, {name: self._check(value, f"features[{name!r}]") for name, value in features.items()})

    def _again(self, batch: _muster.Batch, other: AnyLookup) -> AnyLookup:
        """A lookup of the same keys in this table."""
        return self._lookup(self._pull(batch, other.keys), other._positions, other._feature)

    def _look_up(self, batch: _muster.Batch, features: Mapping[str, CheckedFeature]) -> dict[str, AnyLookup]:
        """Lookups that share their rows."""
        unique, positions = share_rows([feature.keys for feature in features.values()])
        pulled = self._pull(batch, unique)
        return {name: self._lookup(pulled, own, feature) for own, (name, feature) in zip(positions, features.items(), strict=True)}

    def _check_lookup(self, lookup: object) -> None:
        """Raises if it is no lookup, or one of another table."""
        if not isinstance(lookup, BaseLookup):
            raise TypeError(
                f'lookup: a {type(lookup).__name__} came, and table "{self.table.name}" takes what need() returned: call need(batch, keys) in '
                "`parse`, and give its result here"
            )
        if lookup.table != self.table.name:
            raise ValueError(
                f'lookup: it is of table "{lookup.table}", and this is table "{self.table.name}": call need() of this one in `parse` as well'
            )


def check_table(table: object) -> None:
    """Raises TypeError if it is not what session.table() returns."""
    if not isinstance(table, _muster.Table):
        raise TypeError(f"table: a {type(table).__name__} came, what session.table() returns is needed")


def check_bags(keys: Keys, has_offsets: bool, prefix: str) -> None:
    """Raises ValueError if the keys make no bags: without offsets, their last dimension is one. `prefix` is for errors."""
    if keys.ndim == 0:
        raise ValueError(f"{prefix}keys: shape () came, at least one dimension is needed")
    if not has_offsets and keys.ndim == 1:
        raise ValueError(f"{prefix}offsets: keys of one dimension need them: give offsets, or keys of shape [bags, n]")
    if has_offsets and keys.ndim != 1:
        raise ValueError(f"{prefix}keys: shape {keys.shape} came, with offsets one dimension is needed")


def prefix_of(name: str) -> str:
    """What stands before the name of an argument in errors about a feature, if it has a name."""
    return f"{name}." if name else ""


def share_rows(features: Sequence[Keys]) -> tuple[Keys, list[npt.NDArray[np.intp]]]:
    """Each key of all features once, ascending; and for each feature, in its shape, the positions of its keys among them."""
    parts = [keys.ravel() for keys in features]
    unique, positions = np.unique(np.concatenate(parts) if len(parts) != 1 else parts[0], return_inverse=True)
    ends = np.cumsum([keys.size for keys in features])
    return unique, [positions[end - keys.size : end].reshape(keys.shape) for keys, end in zip(features, ends, strict=True)]
