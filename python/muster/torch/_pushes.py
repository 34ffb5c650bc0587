"""What the modules of a minibatch push when it is committed: together, and only once."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import torch

from .. import _muster
from ..errors import FailedPrecondition
from . import _arrays, _device


class Outgoing(NamedTuple):
    """A tensor that leaves its device, and what is done with it then."""

    values: torch.Tensor
    push: Callable[[_muster.Batch, _arrays.Floats], None]
    gradient: bool


class Part(Protocol):
    """What takes part in a minibatch."""

    def _leaves(self) -> list[torch.Tensor]:
        """Tensors whose `grad` is pushed."""

    def _outgoing(self) -> Iterator[Outgoing]:
        """Called once: the minibatch is over for this part."""


class Pushes:
    """Of one minibatch. Gradients of all parts leave their devices together, with one wait."""

    def __init__(self, batch: _muster.Batch) -> None:
        """Use `of()`."""
        self._batch = weakref.ref(batch)
        self._parts: list[Part] = []
        self._step: PushStep | None = None

    @staticmethod
    def of(batch: _muster.Batch) -> Pushes:
        """Those of the minibatch, which are made when they are first asked for."""
        pushes = _of_batch.get(batch)
        if pushes is None:
            pushes = _of_batch[batch] = Pushes(batch)
        return pushes

    def add(self, batch: _muster.Batch, part: Part) -> None:
        """The part is asked when the minibatch is committed."""
        batch.on_commit(self._push)  # whichever is called first pushes for all
        if part not in self._parts:
            self._parts.append(part)

    def leaves(self) -> list[torch.Tensor]:
        return [leaf for part in self._parts for leaf in part._leaves()]

    def step(self) -> PushStep:
        if self._step is None:
            self._step = PushStep(self)
        return self._step

    def _push(self) -> None:
        batch, parts = self._batch(), self._parts
        self._parts = []
        leaving = [outgoing for part in parts for outgoing in part._outgoing()]
        if batch is None or batch.evaluate:
            return
        if self._step is not None and not self._step.made:
            leaving = [outgoing for outgoing in leaving if not outgoing.gradient]
        for outgoing, floats in zip(leaving, _arrays.floats_of([outgoing.values for outgoing in leaving])):
            outgoing.push(batch, floats)


class PushStep:
    """The push of a minibatch, in the form of an optimizer that `torch.amp.GradScaler` takes; `push_step()` makes it.

        pushes = muster.torch.push_step(batch)
        scaler.scale(loss).backward()
        scaler.unscale_(pushes)                                              # only if gradients are clipped
        torch.nn.utils.clip_grad_norm_(pushes.parameters(), 1.0)
        scaler.step(pushes)
        scaler.update()

    Its gradients are pushed when the minibatch is committed, and only if `step()` was called, which GradScaler does unless one
    of them is infinite or NaN. Otherwise the minibatch is committed without gradients: it takes effect once, as a step that
    changes nothing but buffers. Each worker has its own GradScaler. It is for tables and `dense()`; ElasticDDP has `scaler`.
    """

    def __init__(self, pushes: Pushes) -> None:
        """Use `push_step()`."""
        self._pushes = pushes
        self.made = False

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """As an optimizer has them."""
        return [{"params": self.parameters()}]

    def parameters(self) -> list[torch.Tensor]:
        """The leaves whose gradients are pushed: rows of lookups that were used, and parameters of dense parts."""
        return self._pushes.leaves()

    def step(self) -> None:
        """The gradients are to be pushed. GradScaler calls it."""
        self.made = True


def push_step(batch: _muster.Batch) -> PushStep:
    """The step of this minibatch, for `torch.amp.GradScaler`: ask for it once the minibatch's modules were called.

    From then on, the gradients of the minibatch are pushed only if its `step()` is called. Raises `FailedPrecondition` if no
    lookup of the minibatch was used, and no dense part was asked for.
    """
    pushes = Pushes.of(batch)
    if not pushes.leaves():
        raise FailedPrecondition("push_step: no module of muster.torch has a part in this minibatch yet: call them, and backward(), before")
    return pushes.step()


_of_batch: weakref.WeakKeyDictionary[_muster.Batch, Pushes] = weakref.WeakKeyDictionary()
