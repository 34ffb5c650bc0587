"""The buffers of a module in a group, such as the statistics of a batch normalisation."""

from __future__ import annotations

from dataclasses import dataclass

import torch

import muster

from . import _device

# Changes of statistics are larger than gradients: below 1e9 per minibatch, to the next 1e-6.
_FRACTION_BITS = 20


@dataclass
class _Followed:
    name: str
    buffer: torch.Tensor
    shared: torch.Tensor  # what all members have, in main memory; it is registered, because the buffer changes in the loop
    bucket: muster.SumBucket

    def now(self) -> torch.Tensor:
        """What the buffer is, in main memory."""
        return _device.download([self.buffer])[0]

    def changed(self) -> bool:
        # Not by the tensor's version: a batch normalisation writes its statistics without counting it.
        return not torch.equal(self.now(), self.shared)


class Buffers:
    """Each minibatch changes the buffers from where the step began, and the step adds the mean of the changes, by records.

    So they do not depend on who computes which minibatch. This is for persistent buffers of real numbers. Those of other
    types are registered, and must stay as they are; those that are not persistent belong to each member.
    """

    def __init__(self, module: torch.nn.Module, group: muster.Group, kind: muster._group.SumKind) -> None:
        self._module = module
        self._followed: list[_Followed] = []
        constant: dict[str, torch.Tensor] = {}
        for name, buffer in self._persistent():
            if buffer.dtype == torch.bool or buffer.is_complex() or buffer.numel() == 0:
                constant[name] = buffer
                continue
            bucket = group.add_bucket(f"change of {name}", buffer.numel(), type=kind, fraction_bits=_FRACTION_BITS)
            self._followed.append(_Followed(name, buffer, _device.host_zeros(buffer).copy_(buffer), bucket))
        self._constant = constant
        self._mirror = _device.Mirror(constant)
        self._mirror.store()
        self._read_versions()

    def _read_versions(self) -> None:
        self._versions = {name: buffer._version for name, buffer in self._constant.items()}

    def _persistent(self) -> list[tuple[str, torch.Tensor]]:
        buffers: dict[torch.Tensor, str] = {}
        for prefix, module in self._module.named_modules():
            for name, buffer in module.named_buffers(prefix, recurse=False):
                if name.rpartition(".")[2] not in module._non_persistent_buffers_set:
                    buffers.setdefault(buffer, name)
        return [(name, buffer) for buffer, name in buffers.items()]

    def memory(self) -> dict[str, torch.Tensor]:
        """What is to be registered."""
        return {one.name: one.shared for one in self._followed} | self._mirror.memory

    def check(self) -> None:
        """Raises if the module has other buffers than before, or one has changed that must not."""
        known = {one.name: one.buffer for one in self._followed} | self._constant
        for name, buffer in self._persistent():
            if name not in known:
                raise RuntimeError(f"buffer {name!r} is not registered with the group: make ElasticDDP when the module is complete")
            if known[name] is not buffer:
                raise RuntimeError(f"buffer {name!r} was replaced by another tensor: change it in place, for example by copy_()")
        for name, buffer in self._constant.items():
            if buffer._version != self._versions[name]:
                raise RuntimeError(
                    f"buffer {name!r} of {buffer.dtype} was changed, which would be this member's alone: register it with persistent=False, "
                    "or keep real numbers in it"
                )

    def add_changes(self, step: muster.GroupStep, weight: int) -> None:
        """The minibatch of `weight` records is over."""
        for one in self._followed:
            now = one.now()
            if not torch.equal(now, one.shared):
                step.add(one.bucket, ((now - one.shared).float() * weight).contiguous())  # type: ignore[arg-type]
        self.restore()

    def apply(self, step: muster.GroupStep) -> None:
        for one in self._followed:
            change = torch.from_numpy(step.sum(one.bucket)).div_(step.records).reshape(one.shared.shape)
            one.shared.add_(change if one.shared.is_floating_point() else change.round_().to(one.shared.dtype))
            self._load(one)

    def restore(self) -> None:
        """Drops what was changed since the step began."""
        for one in self._followed:
            if one.changed():
                self._load(one)

    def load(self) -> None:
        """The buffers are what all members have."""
        for one in self._followed:
            self._load(one)
        self._mirror.load()
        self._read_versions()

    def _load(self, one: _Followed) -> None:
        with torch.no_grad():
            _device.upload_into(one.buffer, one.shared)

    def store(self) -> None:
        """What the buffers are before the first step counts."""
        for one in self._followed:
            one.shared.copy_(one.buffer)
        self._mirror.store()
