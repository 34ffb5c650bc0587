"""The state of an optimizer of torch.optim, in memory that stays where it is."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from . import _device, _numbers

Values = dict[str, Any]  # the state of one parameter


def _layout_of(optimizer: torch.optim.Optimizer, name: str) -> list[Values]:
    """What the state of each parameter is like after a step: that of a copy, with gradients of zero."""
    copied = copy.deepcopy(optimizer)
    for parameter in parameters_of(copied):
        parameter.grad = torch.zeros_like(parameter)
    try:
        with torch.random.fork_rng(devices=[]):
            copied.step()
    except TypeError as error:
        raise TypeError(f"optimizer: {name} cannot make a step without arguments, such as a closure: take another one") from error
    parameters = list(parameters_of(copied))
    alien = [key for key in copied.state if not any(key is parameter for parameter in parameters)]
    if alien:
        raise TypeError(f"optimizer: {name} keeps state that belongs to no parameter, and that newcomers could not copy")
    return [copied.state.get(parameter, {}) for parameter in parameters]


def parameters_of(optimizer: torch.optim.Optimizer) -> Iterator[torch.nn.Parameter]:
    for group in optimizer.param_groups:
        yield from group["params"]


class OptimizerState:
    """The optimizer makes its state in its first step, as without Muster; but the memory for it is there before.

    `memory` has the tensors to register, by name. Of the state of a parameter, tensors are these themselves; numbers, and
    tensors on a device, are copied there by `store`, and back by `load`.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, names: dict[torch.nn.Parameter, str]) -> None:
        self._optimizer = optimizer
        self._name = type(optimizer).__name__
        self._parameters = list(parameters_of(optimizer))
        self._names = [names[parameter] for parameter in self._parameters]
        layout = _layout_of(optimizer, self._name)
        self._slots = [self._slots_of(values, name) for values, name in zip(layout, self._names)]
        self._kinds = [{key: type(value) for key, value in values.items()} for values in layout]
        self._devices = [{key: value.device for key, value in values.items() if isinstance(value, torch.Tensor)} for values in layout]
        self._made = torch.zeros(len(self._parameters), dtype=torch.int64)
        self.memory: dict[str, torch.Tensor] = {f"optimizer {self._name} made": self._made}
        for name, slots in zip(self._names, self._slots):
            for key, slot in slots.items():
                self.memory[f"optimizer {name} {key}"] = slot
        self.store()

    @property
    def parameters(self) -> int:
        """How many."""
        return len(self._parameters)

    def _slots_of(self, values: Values, name: str) -> Values:
        slots: Values = {}
        for key, value in values.items():
            if isinstance(value, torch.Tensor):
                slots[key] = _device.host_zeros(value)
            elif isinstance(value, float):
                slots[key] = torch.zeros(1, dtype=torch.float64)
            elif isinstance(value, int):
                slots[key] = torch.zeros(1, dtype=torch.int64)
            elif value is not None:
                raise TypeError(
                    f"optimizer: {self._name} keeps a {type(value).__name__} as {key!r} of the parameter {name!r}: only tensors and "
                    "numbers can be registered with the group"
                )
        return slots

    def store(self) -> None:
        """After a step of the optimizer: its state is in the memory. Raises if it has another form than in the first step."""
        for index, parameter in enumerate(self._parameters):
            values = self._optimizer.state.get(parameter, {})
            self._made[index] = int(bool(values))
            for key, value in values.items():
                if value is not None:
                    self._store(index, key, values, value)

    def _store(self, index: int, key: str, values: Values, value: Any) -> None:
        slot = self._slots[index].get(key)
        if slot is None:
            raise RuntimeError(
                f"optimizer: {self._name} has state {key!r} of the parameter {self._names[index]!r} that its first step did not "
                "make: it is not registered with the group"
            )
        if not isinstance(value, torch.Tensor):
            slot[0] = value
        elif value is not slot:
            if value.shape != slot.shape or value.dtype != slot.dtype:
                raise RuntimeError(
                    f"optimizer: the state {key!r} of the parameter {self._names[index]!r} is {value.dtype} of shape "
                    f"{tuple(value.shape)}, and was registered as {slot.dtype} of shape {tuple(slot.shape)}"
                )
            slot.copy_(value)
            if not _device.pins(value.device):
                values[key] = slot

    def load(self) -> None:
        """After the memory was copied from another member: it is the optimizer's state."""
        for index, parameter in enumerate(self._parameters):
            if not self._made[index]:
                self._optimizer.state.pop(parameter, None)
                continue
            values = self._optimizer.state[parameter]
            for key, slot in self._slots[index].items():
                kind = self._kinds[index][key]
                values[key] = _device.upload(slot, self._devices[index][key]) if issubclass(kind, torch.Tensor) else kind(slot.item())


class Rates:
    """The numbers of the optimizer's groups (learning rates and the like) and of schedulers, in memory that stays."""

    def __init__(self, optimizer: torch.optim.Optimizer, schedulers: Sequence[Any]) -> None:
        self._optimizer, self._schedulers = optimizer, schedulers
        self.memory = torch.tensor(_numbers.read(self._tree()), dtype=torch.float64)

    def _tree(self) -> list[Any]:
        groups = [{key: value for key, value in group.items() if key != "params"} for group in self._optimizer.param_groups]
        return [groups, [copy.deepcopy(scheduler.state_dict()) for scheduler in self._schedulers]]

    def store(self) -> None:
        """After a step."""
        values = _numbers.read(self._tree())
        if len(values) != self.memory.numel():
            kinds = ", ".join(type(one).__name__ for one in self._schedulers) or "the optimizer's groups"
            raise RuntimeError(
                f"scheduler: the state of {kinds} had {self.memory.numel()} numbers when ElasticDDP was made, and has {len(values)} now: "
                "newcomers could not copy it"
            )
        self.memory.copy_(torch.tensor(values, dtype=torch.float64))

    def load(self) -> None:
        """After the memory was copied from another member."""
        groups, states = _numbers.write(self._tree(), self.memory.tolist())
        for group, values in zip(self._optimizer.param_groups, groups):
            group.update(values)
        for scheduler, state in zip(self._schedulers, states):
            scheduler.load_state_dict(state)
