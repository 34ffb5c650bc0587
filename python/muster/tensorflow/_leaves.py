"""What has a gradient in a minibatch: rows that were pulled, and the variables of dense parts."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from .. import _muster
from .._arrays import Floats
from ..errors import FailedPrecondition
from . import _arrays


class Gradient:
    """The sum of the gradients of a leaf in its minibatch."""

    def __init__(self, name: str, leaf: Any, shape: tuple[int, ...]) -> None:
        self.name, self.leaf, self.shape = name, leaf, shape
        self._sum: Floats | None = None

    def add(self, gradient: Any) -> None:
        """Adds one. Raises ValueError if it has another shape than the leaf."""
        values = _arrays.floats_of(gradient)
        if values.shape != self.shape:
            raise ValueError(f"gradient of {self.name}: shape {values.shape} came, {self.shape} is needed")
        self._sum = values if self._sum is None else self._sum + values

    def take(self) -> Floats | None:
        """The sum, once. None if none came."""
        taken, self._sum = self._sum, None
        return taken


@dataclass
class _Minibatch:
    gradients: dict[int, Gradient] = field(default_factory=dict)  # by the id of the leaf, which it keeps alive
    over: bool = False

    def end(self) -> None:
        self.gradients.clear()
        self.over = True


_minibatches: weakref.WeakKeyDictionary[_muster.Batch, _Minibatch] = weakref.WeakKeyDictionary()


def register(batch: _muster.Batch, name: str, leaf: Any, shape: tuple[int, ...]) -> Gradient:
    """The leaf can have gradients until the minibatch is committed."""
    minibatch = _minibatches.get(batch)
    if minibatch is None:
        minibatch = _minibatches[batch] = _Minibatch()
        batch.on_commit(minibatch.end)
    gradient = minibatch.gradients[id(leaf)] = Gradient(name, leaf, shape)
    return gradient


def _open(batch: _muster.Batch) -> _Minibatch:
    if batch.evaluate:
        raise FailedPrecondition("the minibatch is one of an evaluation, which has no gradients: check batch.evaluate before")
    minibatch = _minibatches.get(batch)
    if minibatch is None:
        raise FailedPrecondition(
            "the minibatch has no leaves: call need(batch) of its tables and dense parts in `parse`, and use the lookups before this call"
        )
    if minibatch.over:
        raise FailedPrecondition("the minibatch is over: call this before `with batch:` ends")
    return minibatch


def leaves(batch: _muster.Batch) -> list[tf.Variable]:
    """What the gradients of a minibatch are taken of: the rows that were used, and the variables of dense parts.

    Call it after the model. Rows are those of each lookup that has gone into its table; `need(batch)` asks for a dense part.
    Raises FailedPrecondition in an evaluation, if there is no leaf, or if the minibatch is over.
    """
    return [gradient.leaf for gradient in _open(batch).gradients.values()]


def apply_gradients(batch: _muster.Batch, gradients_and_leaves: Iterable[tuple[Any, Any]]) -> None:
    """Hands over gradients of leaves, as `apply_gradients` of an optimizer of Keras does. The servers have the optimizers.

        with tf.GradientTape() as tape:
            loss = loss_of(model(users(lookup)), labels)
        leaves = muster.tensorflow.leaves(batch)
        muster.tensorflow.apply_gradients(batch, zip(tape.gradient(loss, leaves), leaves))

    They are pushed when the minibatch is committed. Gradients of several calls are added up. A gradient is a tensor, an array, or
    `tf.IndexedSlices`, in the shape of its leaf; None adds nothing. Gradients are sums: nothing divides them by the number of
    records.

    Raises ValueError if a leaf is not one of the minibatch, if a gradient has another shape, or if all are None; FailedPrecondition
    as `leaves()` does.
    """
    minibatch = _open(batch)
    pairs = list(gradients_and_leaves)
    if all(gradient is None for gradient, _ in pairs):
        raise ValueError("gradients: all are None: compute the whole loss inside of `with tf.GradientTape()`, from the rows and the model")
    for gradient, leaf in pairs:
        place = minibatch.gradients.get(id(leaf))
        if place is None:
            raise ValueError(
                f"leaf: {getattr(leaf, 'path', None) or getattr(leaf, 'name', leaf)!r} is none of this minibatch, which has "
                f"{', '.join(one.name for one in minibatch.gradients.values())}: take them from leaves(batch)"
            )
        if gradient is not None:
            place.add(gradient)
