"""Local steps: members train a module alone for many minibatches, and then bring their weights together."""

from __future__ import annotations

from collections.abc import Iterator

import torch

import muster
from muster._group import OuterOptimizer, SumKind

from ._modules import check_module


class DiLoCo:
    """A module whose members meet once in a step of the group, for slow networks; see `muster.DiLoCo`.

        local = muster.torch.DiLoCo(module, session.group())
        for step in local.steps():
            for batch in step.batches(parse):
                with batch:
                    optimizer.zero_grad()
                    loss_of(module(inputs), labels).backward()
                    optimizer.step()
            step.commit()

    The loop is that of plain PyTorch, with an optimizer of the member's own: its state and that of its schedulers are not
    registered, and begin again when a process does. Parameters, which are float32, come together by the outer optimizer.
    Persistent buffers of float32 are averaged; others belong to each member. All members share the weights in an evaluation,
    and when `steps()` has ended.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        group: muster.Group,
        *,
        outer: OuterOptimizer = muster.OuterNesterov(),
        sum: SumKind = "float32",
        fragments: int = 1,
        mixing: float = 0.0,
        members: int = 0,
    ) -> None:
        """Registers the module, whose initial values must be the same in every member. The options are those of `muster.DiLoCo`."""
        names = check_module(module)
        for parameter, name in names.items():
            if parameter.dtype != torch.float32:
                raise TypeError(f"module: {name!r} is of {parameter.dtype}, float32 is needed: call module.float(), and use autocast")
        self.module, self.group = module, group
        self._local = muster.DiLoCo(group, outer=outer, type=sum, fragments=fragments, mixing=mixing, members=members)
        for parameter, name in names.items():
            self._local.add_weights(name, parameter.detach())  # type: ignore[arg-type]
        for name, tensor in module.state_dict().items():
            # What is not finite, such as a mask of -inf, has no mean; it is a constant.
            averaged = tensor.dtype == torch.float32 and bool(torch.isfinite(tensor).all())
            if name not in names.values() and averaged and tensor.data_ptr() not in {p.data_ptr() for p in names}:
                self._local.add_mean(name, tensor.detach())

    def steps(self) -> Iterator[muster.GroupStep]:
        """The steps, until the job is over or drains, or this worker leaves."""
        return self._local.steps()


class LocalSGD(DiLoCo):
    """After each step, all members go on from the mean of their weights."""

    def __init__(self, module: torch.nn.Module, group: muster.Group, *, sum: SumKind = "float32") -> None:
        super().__init__(module, group, outer=muster.OuterSgd(), sum=sum)
