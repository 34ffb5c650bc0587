"""Modules over tables of the servers: the rows of a minibatch are one tensor with a gradient."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from .. import _muster
from .._lookups import BaseEmbedding, BaseLookup, CheckedFeature, PulledRows, check_bags, check_table, prefix_of
from . import _arrays, _device
from ._pushes import Outgoing, Pushes


class Feature(NamedTuple):
    """The keys of one feature, and how they make bags; see `EmbeddingBag.need`."""

    keys: Any
    offsets: Any = None
    weights: Any = None


class _Pulled(PulledRows[torch.Tensor]):
    """Rows as a tensor with a gradient."""

    def __init__(self, batch: _muster.Batch, module: _Module, keys: _arrays.Keys) -> None:
        super().__init__(batch, module.table, keys)
        self.module = module

    def make_leaf(self, pulled: _arrays.Floats, batch: _muster.Batch) -> torch.Tensor:
        Pushes.of(batch).add(batch, self)
        return _device.upload(_arrays.tensor_of(pulled), self.module._place.device).requires_grad_(not batch.evaluate)

    def _leaves(self) -> list[torch.Tensor]:
        return [] if self._leaf is None else [self._leaf]

    def _outgoing(self) -> Iterator[Outgoing]:
        rows = self.take()
        if rows is not None and rows.grad is not None:
            yield Outgoing(rows.grad, lambda batch, floats: batch.push(self.table, self.keys, floats), gradient=True)


class Lookup(BaseLookup[torch.Tensor]):
    """Which rows of a table a minibatch needs, and where. need() makes it in `parse`; in the loop, it goes into its module.

    Equal keys share a row: `rows` has each key once. It can be used until its minibatch is committed, on the loop's thread.
    """

    def __init__(self, pulled: PulledRows[torch.Tensor], positions: npt.NDArray[np.intp], feature: CheckedFeature) -> None:
        """Use need()."""
        super().__init__(pulled, positions, feature)
        self.positions = torch.from_numpy(positions)
        self.offsets = None if feature.offsets is None else torch.from_numpy(feature.offsets)
        self.weights: torch.Tensor | None = feature.weights
        self.features = feature.features

    @property
    def rows(self) -> torch.Tensor:
        """[len(keys), dim], float32: a leaf, whose `grad` is pushed. Pulls them if the module was not called yet. Do not write to it.

        It is for norms and clipping: `torch.nn.utils.clip_grad_norm_([lookup.rows, *module.parameters()], 1.0)`.
        """
        return self._pulled.rows()


class _Jagged:
    """A KeyedJaggedTensor of TorchRec, or a nested tensor of PyTorch with the layout `torch.jagged`."""

    def __init__(self, value: Any) -> None:
        self.keys = value.values()
        self.offsets = value.offsets()
        weights = getattr(value, "weights_or_none", None)
        self.weights = weights() if weights is not None else None
        names = getattr(value, "keys", None)
        self.features = len(names()) if names is not None else None

    @staticmethod
    def is_one(value: object) -> bool:
        return not isinstance(value, (Mapping, np.ndarray)) and callable(getattr(value, "offsets", None)) and callable(getattr(value, "values", None))


class _Module(nn.Module, BaseEmbedding[Lookup]):
    """What both modules have. It has no parameters, so an optimizer of PyTorch has nothing to do with it."""

    _place: torch.Tensor

    def __init__(self, table: _muster.Table) -> None:
        super().__init__()
        check_table(table)
        self.table = table
        # to() of a model that contains this moves it: rows then go there, and results are of its dtype.
        self.register_buffer("_place", torch.empty(0), persistent=False)

    def extra_repr(self) -> str:
        """What the text of a model shows of it."""
        return f'"{self.table.name}", dim={self.table.dim}'

    def _pull(self, batch: _muster.Batch, keys: _arrays.Keys) -> _Pulled:
        return _Pulled(batch, self, keys)

    def _lookup(self, pulled: PulledRows[torch.Tensor], positions: npt.NDArray[np.intp], feature: CheckedFeature) -> Lookup:
        return Lookup(pulled, positions, feature)

    def _rows(self, lookup: Lookup) -> torch.Tensor:
        self._check_lookup(lookup)
        return lookup.rows


class EmbeddingTable(_Module):
    """A row for each key, like `torch.nn.Embedding`: keys of any shape give that shape and one more dimension of the table's dim.

        users = muster.torch.EmbeddingTable(session.table("user", dim=16, optimizer=muster.Adagrad(0.05)))
        lookup = users.need(batch, keys)    # in `parse`
        vectors = users(lookup)             # in the loop

    When the minibatch is committed, the gradient of the rows is pushed. It is a sum: nothing divides it by the number of records.
    In a dataset of mode `evaluate`, rows have no gradient. All rows that need() asked for take a step, also with a gradient of 0.

    The rows are float32. `to(device)` of this module, or of one that contains it, says where they go. The result has the dtype
    of the module, which is float32 until `to(dtype)` changes it.
    """

    def need(self, batch: _muster.Batch, keys: Any) -> Lookup:
        """Asks for rows ahead of time; call it in `parse`.

        `keys` are uint64 or another kind of whole number, none below 0: an array or a tensor of any shape. Also a
        KeyedJaggedTensor or a nested tensor, which gives a row for each of its values, or a Lookup of another table, whose keys
        are used again. Each call has rows of its own; see need_features(). Raises TypeError or ValueError if keys are wrong.
        """
        return self._again(batch, keys) if isinstance(keys, Lookup) else self._need(batch, keys)

    def need_features(self, batch: _muster.Batch, features: Mapping[str, Any]) -> dict[str, Lookup]:
        """The same for several features of one table, by name: all share their rows, so a row has one gradient."""
        return self._need_features(batch, features)

    def forward(self, lookup: Lookup) -> torch.Tensor:
        """The rows: [*the shape of the keys, dim]. Waits until they have arrived."""
        return _embed(self, lookup)

    def _check(self, value: Any, name: str) -> CheckedFeature:
        name = name or "keys"
        if _Jagged.is_one(value):
            jagged = _Jagged(value)
            if jagged.weights is not None:
                raise ValueError(f"{name}: it has weights, which only an EmbeddingBag can use")
            return CheckedFeature(_arrays.keys_of(jagged.keys, f"{name}.values()"))
        return CheckedFeature(_arrays.keys_of(value, name))


class EmbeddingBag(_Module):
    """The sum or the mean of rows for each bag of keys, like `torch.nn.EmbeddingBag`. What EmbeddingTable says holds here too.

    `mode` is "sum" or "mean"; the result of an empty bag is 0. With `include_last_offset`, offsets have one more element, the
    number of keys.
    """

    def __init__(self, table: _muster.Table, *, mode: str = "sum", include_last_offset: bool = False) -> None:
        super().__init__(table)
        if mode not in ("sum", "mean"):
            raise ValueError(f'mode: {mode!r} came, "sum" or "mean" is allowed')
        self.mode = mode
        self.include_last_offset = include_last_offset

    def extra_repr(self) -> str:
        """What the text of a model shows of it."""
        return f"{super().extra_repr()}, mode={self.mode!r}"

    def need(self, batch: _muster.Batch, keys: Any, offsets: Any = None, weights: Any = None) -> Lookup:
        """Asks for rows ahead of time; call it in `parse`.

        `keys` of shape [..., n] are bags of n, and give [..., dim]. With `offsets`, `keys` have one dimension, and bag i begins at
        offsets[i]: whole numbers that begin with 0 and do not decrease. `weights`, float32 in the shape of `keys`, multiply the
        rows of a sum. A KeyedJaggedTensor gives [batch, features, dim], and a nested tensor [batch, dim]. A Lookup of another
        table has its bags. Raises TypeError or ValueError if something is wrong.
        """
        if isinstance(keys, Lookup):
            if offsets is not None or weights is not None:
                raise ValueError("keys: a Lookup has its own offsets and weights: leave them out")
            return self._again(batch, keys)
        return self._need(batch, Feature(keys, offsets, weights))

    def need_features(self, batch: _muster.Batch, features: Mapping[str, Any]) -> dict[str, Lookup]:
        """The same for several features of one table, by name: all share their rows, so a row has one gradient.

        A value is a `Feature(keys, offsets, weights)`, or keys alone.
        """
        return self._need_features(batch, features)

    def forward(self, lookup: Lookup, weights: torch.Tensor | None = None) -> torch.Tensor:
        """The bags: [..., dim]. Waits until the rows have arrived.

        `weights` are used in place of those of need(); they may have a gradient of their own.
        """
        return _pool(self, lookup, weights)

    def _check(self, value: Any, name: str) -> CheckedFeature:
        keys, offsets, weights = value if isinstance(value, Feature) else Feature(value)
        count, include_last, prefix = None, self.include_last_offset, prefix_of(name)
        if _Jagged.is_one(keys):
            if offsets is not None or weights is not None:
                raise ValueError(f"{prefix}keys: a jagged tensor has its own offsets and weights: leave them out")
            jagged = _Jagged(keys)
            keys, offsets, weights, count, include_last = jagged.keys, jagged.offsets, jagged.weights, jagged.features, True
        array = _arrays.keys_of(keys, f"{prefix}keys")
        check_bags(array, offsets is not None, prefix)
        begins = None if offsets is None else _arrays.offsets_of(offsets, f"{prefix}offsets", array.size, include_last)
        return CheckedFeature(array, begins, self._weights(weights, f"{prefix}weights", array.shape), count)

    def _weights(self, weights: Any, name: str, shape: tuple[int, ...]) -> torch.Tensor | None:
        if weights is None:
            return None
        if self.mode != "sum":
            raise ValueError(f'{name}: they came with mode {self.mode!r}, and only bags of mode "sum" have weights')
        return _arrays.weights_of(weights, name, shape)


def _not_compiled(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """The compiler leaves the function to Python: a pull is no graph. It is not imported for this, because that takes 2 s."""
    left: Callable[..., torch.Tensor] | None = None

    @functools.wraps(function)
    def call(*arguments: Any) -> torch.Tensor:
        nonlocal left
        if "torch._dynamo" not in sys.modules:
            return function(*arguments)
        if left is None:
            left = torch.compiler.disable(function)  # type: ignore[no-untyped-call]
        return left(*arguments)

    return call


@_not_compiled
def _embed(module: EmbeddingTable, lookup: Lookup) -> torch.Tensor:
    rows = module._rows(lookup)
    return functional.embedding(_device.upload(lookup.positions, rows.device), rows).to(module._place.dtype)


@_not_compiled
def _pool(module: EmbeddingBag, lookup: Lookup, weights: torch.Tensor | None) -> torch.Tensor:
    rows = module._rows(lookup)
    if weights is None:
        weights = lookup.weights
        if weights is not None and module.mode != "sum":
            raise ValueError(f'lookup: it has weights, and this module has mode {module.mode!r}: only bags of mode "sum" have weights')
    else:
        weights = module._weights(weights, "weights", tuple(lookup.positions.shape))
    bags = _bags(module, rows, lookup, weights)
    if lookup.offsets is None:
        bags = bags.reshape(*lookup.positions.shape[:-1], module.table.dim)
    elif lookup.features is not None:
        bags = bags.reshape(lookup.features, -1, module.table.dim).transpose(0, 1)
    return bags.to(module._place.dtype)


def _bags(module: EmbeddingBag, rows: torch.Tensor, lookup: Lookup, weights: torch.Tensor | None) -> torch.Tensor:
    """[bags, dim]"""
    positions, offsets = _device.upload(lookup.positions, rows.device), lookup.offsets
    if offsets is None:
        positions = positions.reshape(math.prod(positions.shape[:-1]), positions.shape[-1])
    weights = None if weights is None else weights.reshape(positions.shape).to(rows.device)
    if positions.numel() == 0:
        return rows.new_zeros((positions.shape[0] if offsets is None else offsets.shape[0] - 1, module.table.dim))
    if offsets is None:  # twice as fast as embedding_bag, whose gradient is slow
        members = functional.embedding(positions, rows)
        if weights is not None:
            members = members * weights.unsqueeze(-1)
        return members.sum(1) if module.mode == "sum" else members.mean(1)
    return functional.embedding_bag(
        positions, rows, _device.upload(offsets, rows.device), mode=module.mode, per_sample_weights=weights, include_last_offset=True
    )
