"""What can be trained in a group: checks of modules and their optimizers."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ._optimizer_state import parameters_of


def check_module(module: torch.nn.Module, devices: Sequence[str] = ("cpu",)) -> dict[torch.nn.Parameter, str]:
    """The names of the parameters, in the order of the module. Raises if a tensor cannot be registered.

    `devices` are the types of devices where tensors may be.
    """
    names = {parameter: name for name, parameter in module.named_parameters()}
    if not any(parameter.requires_grad for parameter in names):
        raise ValueError(f"module: {type(module).__name__} has no parameter that requires a gradient: there is nothing to train")
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if torch.nn.parameter.is_lazy(tensor):
            raise ValueError(f"module: {name!r} has no shape yet: call the module once before")
        if tensor.device.type not in devices:
            calls = " or ".join(f"module.{device}()" for device in devices)
            raise ValueError(f"module: {name!r} is on {tensor.device}: call {calls}, and make the optimizer after that")
        if not tensor.is_contiguous():
            raise ValueError(f"module: {name!r} is not contiguous in C order: call module.to(memory_format=torch.contiguous_format)")
    for parameter, name in names.items():
        if parameter.is_complex():
            raise TypeError(f"module: {name!r} is of {parameter.dtype}: keep its real and imaginary parts as real parameters")
    return names


def check_optimizer(optimizer: torch.optim.Optimizer, names: dict[torch.nn.Parameter, str]) -> list[torch.nn.Parameter]:
    """The parameters that are trained, in the order of the module. Raises if the optimizer is not one of the module."""
    known = set(parameters_of(optimizer))
    if not known <= names.keys():
        shape = next(tuple(parameter.shape) for parameter in parameters_of(optimizer) if parameter not in names)
        raise ValueError(
            f"optimizer: it has a parameter of shape {shape} that the module does not have: make the optimizer after the module was "
            "moved or changed, from module.parameters()"
        )
    for parameter, name in names.items():
        if parameter.requires_grad and parameter not in known:
            raise ValueError(
                f"optimizer: it does not have the parameter {name!r}: make the optimizer after the module was moved or changed, from "
                "module.parameters(), or call requires_grad_(False) if it is not to be trained"
            )
    for owner, values in optimizer.state.items():
        assert isinstance(owner, torch.nn.Parameter)  # one of `known`
        for key, value in values.items():
            if isinstance(value, torch.Tensor) and value.device.type != "cpu" and value.device != owner.device:
                name = next(name for parameter, name in names.items() if parameter is owner)
                raise ValueError(
                    f"optimizer: its state {key!r} of the parameter {name!r} is on {value.device}, and the parameter on {owner.device}: "
                    "make the optimizer after the module was moved"
                )
    return [parameter for parameter in names if parameter in known and parameter.requires_grad]
