"""A model whose variables are dense tensors on the servers: what those of PyTorch and of TensorFlow have in common."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from . import _muster
from ._arrays import Floats, address_of
from ._session import Initializer, Optimizer, Schedule, Session
from ._tensor_names import TensorNames
from .errors import FailedPrecondition


@dataclass
class Part:
    """A variable of a model, and its tensor on the servers."""

    name: str  # in the model
    tensor: _muster.DenseTensor
    shape: tuple[int, ...]
    trained: bool  # False: the model writes it itself, as a batch normalisation does, and the change is pushed
    # What was pulled last: while it is the same memory, there is nothing to copy.
    pulled: Floats | None = field(default=None, init=False)

    def pull(self, batch: _muster.Batch) -> None:
        """Copies what the servers have into the variable, if that is something else. See keep()."""
        raise NotImplementedError

    def keep(self, pulled: Floats) -> bool:
        """It was pulled. Returns if it is something else than before."""
        other = self.pulled is None or address_of(self.pulled) != address_of(pulled)
        self.pulled = pulled
        return other

    def push_gradient(self, batch: _muster.Batch, gradient: Floats) -> None:
        """Pushes the gradient, which has the shape of the variable."""
        assert self.pulled is not None
        batch.push(self.tensor, gradient.reshape(self.pulled.shape))

    def push_change(self, batch: _muster.Batch, value: Floats) -> None:
        """Pushes what the model has changed since pull(), if anything: the variable has this value now."""
        assert self.pulled is not None
        change: Floats = value.reshape(self.pulled.shape) - self.pulled
        if change.any():
            batch.push(self.tensor, change)


class Kept(Protocol):
    """A variable that is not on the servers, and must not change."""

    name: str

    def changed(self) -> bool:
        """It has."""


AnyPart = TypeVar("AnyPart", bound=Part)


class DenseModel(Generic[AnyPart]):
    """The variables of one model through its minibatches, on one thread."""

    _MODEL = "model"  # what the framework calls it
    _VARIANCE = ""  # how the name of a variance that the model keeps ends
    _STEADY = ""  # what keeps that from falling below 0
    _KEPT = ""  # why a variable is not on the servers, and what helps; of {name}

    def __init__(self, name: str, parts: list[AnyPart], kept: Sequence[Kept]) -> None:
        """Use `dense()`."""
        self.name = name
        self._parts = parts
        self._kept = kept
        self._thread: int | None = None
        self._batch: _muster.Batch | None = None

    def need(self, batch: _muster.Batch) -> None:
        """Asks for the tensors ahead of time; call it in `parse`. Without a `parse`, call it at the beginning of the minibatch."""
        for part in self._parts:
            batch.need(part.tensor)
        batch.on_begin(lambda: self._begin(batch))

    def tensors(self) -> dict[str, _muster.DenseTensor]:
        """The tensor on the servers of each variable, by its name in the model."""
        return {part.name: part.tensor for part in self._parts}

    def _begin(self, batch: _muster.Batch) -> None:
        """The loop comes to the minibatch."""
        if self._thread not in (None, threading.get_ident()):
            raise self._error(f"another thread trains this {self._MODEL}: make a {self._MODEL}, and a dense part, for each thread")
        self._thread = threading.get_ident()
        for part in self._parts:
            part.pull(batch)
            if batch.evaluate and part.name.endswith(self._VARIANCE) and part.pulled is not None and bool((part.pulled < 0).any()):
                raise self._error(
                    f"{part.name} has fallen below 0, because minibatches change it that do not see each other's changes: {self._STEADY}"
                )
        self._batch = batch
        self._join(batch)

    def _join(self, batch: _muster.Batch) -> None:
        """The variables are those of this minibatch. It sees to it that what leaves is pushed at its commit."""
        raise NotImplementedError

    def _check_kept(self) -> None:
        """Raises if what is not on the servers has changed."""
        for kept in self._kept:
            if kept.changed():
                raise self._error(f"{kept.name} has changed, but it is not on the servers, because {self._KEPT.format(name=kept.name)}")

    def _error(self, text: str) -> FailedPrecondition:
        return FailedPrecondition(f'dense part "{self.name}": {text}')


class Tensors:
    """Makes the tensors of one model on the servers."""

    def __init__(self, session: Session, name: str, schedule: Schedule, warm_start: str) -> None:
        """`name` begins their names; ValueError if it cannot."""
        self._session, self._schedule, self._warm_start = session, schedule, warm_start
        self._names = TensorNames(name)

    def __call__(self, key: str, shape: tuple[int, ...], optimizer: Optimizer, initializer: Initializer) -> _muster.DenseTensor:
        """That for what the model calls `key`. A number is a tensor of one element."""
        return self._session.dense(
            self._names(key), shape or 1, optimizer=optimizer, initializer=initializer, schedule=self._schedule, warm_start=self._warm_start
        )
