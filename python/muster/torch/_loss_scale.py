"""The scale of the loss in a group: a GradScaler whose scale all members have, and whose steps all of them make or skip."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

import muster


def enabled(scaler: torch.amp.GradScaler | None) -> torch.amp.GradScaler | None:
    """The scaler, or None if it does nothing. Raises TypeError if it is no GradScaler."""
    if scaler is None:
        return None
    if not isinstance(scaler, torch.amp.GradScaler):
        raise TypeError(f"scaler: a {type(scaler).__name__} came, a torch.amp.GradScaler is needed")
    return scaler if scaler.is_enabled() else None


def after_step(state: dict[str, Any], overflowed: bool) -> dict[str, Any]:
    """The state of a GradScaler after its `update()`; `overflowed`: a gradient was infinite or NaN."""
    scale, tracker = state["scale"], state["_growth_tracker"] + 1
    if overflowed:
        scale, tracker = _float32(scale * state["backoff_factor"]), 0
    elif tracker == state["growth_interval"]:
        grown, tracker = _float32(scale * state["growth_factor"]), 0
        scale = grown if math.isfinite(grown) else scale
    return {**state, "scale": scale, "_growth_tracker": tracker}


def _float32(value: float) -> float:
    return torch.tensor(value, dtype=torch.float64).to(torch.float32).item()


class LossScale:
    """Of one group. Minibatches say whether they have overflowed, and a step in which one has changes nothing but the scale."""

    def __init__(self, scaler: torch.amp.GradScaler, group: muster.Group) -> None:
        """Registers a bucket with the group."""
        self._scaler = scaler
        self._bucket = group.add_bucket("minibatches that overflowed", 1)
        self.read()

    def read(self) -> None:
        """The scale may be another one now."""
        self.factor = float(self._scaler.get_scale())

    def check(self) -> None:
        """Raises if somebody else has changed the scale."""
        if self._scaler.get_scale() != self.factor:
            raise RuntimeError(
                f"scaler: its scale was {self.factor}, and is {self._scaler.get_scale()}, which would be this member's alone: leave update() out, "
                "step.commit() calls it"
            )

    def add_overflow(self, step: muster.GroupStep) -> None:
        """The current minibatch has a gradient that is infinite or NaN."""
        step.add(self._bucket, np.ones(1, np.float32))

    def update(self, step: muster.GroupStep) -> bool:
        """In `apply`: the next scale. False: a minibatch of the step has overflowed, and weights must stay."""
        overflowed = bool(step.sum(self._bucket)[0] > 0)
        self._scaler.load_state_dict(after_step(self._scaler.state_dict(), overflowed))
        self.read()
        return not overflowed
