"""Copies between main memory and a device: through pinned memory, and in the order of the device's current stream.

As with an optimizer of PyTorch, "current" is what the calling thread has chosen. Whoever computes in another stream lets that
wait for this one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch


def pins(device: torch.device) -> bool:
    """True if copies go through pinned memory, so that the host need not wait for each."""
    return device.type == "cuda"


def _pinned(shape: torch.Size, dtype: torch.dtype) -> torch.Tensor:
    # PyTorch does not hand out the memory again before copies that were begun from it or to it have ended.
    return torch.empty(shape, dtype=dtype, pin_memory=True)


def _wait(device: torch.device) -> None:
    torch.cuda.current_stream(device).synchronize()


def _begin_upload(value: torch.Tensor, device: torch.device) -> torch.Tensor:
    """The values in memory from which a copy to the device need not be waited for."""
    return _pinned(value.shape, value.dtype).copy_(value) if pins(device) and value.numel() > 0 else value


def upload(value: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A tensor in main memory, which has no gradient, on the device; itself for the CPU. Its memory may be freed at once."""
    return _begin_upload(value, device).to(device, non_blocking=pins(device))


def upload_into(target: torch.Tensor, value: torch.Tensor) -> None:
    """Copies values in main memory into a tensor of the same shape, whose dtype they take."""
    target.copy_(_begin_upload(value.to(target.dtype), target.device), non_blocking=pins(target.device))


def host_zeros(value: torch.Tensor) -> torch.Tensor:
    """Zeros in main memory, of the same shape and dtype, in C order."""
    if pins(value.device):
        return _pinned(value.shape, value.dtype).zero_()
    return torch.zeros_like(value, memory_format=torch.contiguous_format)


def download(values: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Copies in main memory, in C order, of the same dtypes; what is there already is not copied.

    All copies begin before one is waited for.
    """
    copies: list[torch.Tensor] = []
    begun: set[torch.device] = set()
    for value in values:
        value = value.detach().contiguous()
        if pins(value.device):
            begun.add(value.device)
            copies.append(_pinned(value.shape, value.dtype).copy_(value, non_blocking=True))
        else:
            copies.append(value.cpu())
    for device in begun:
        _wait(device)
    return copies


class Mirror:
    """Memory of tensors that others may read and write: their own, or, of those on a device, main memory that stands for it."""

    def __init__(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """`memory` has the tensors to register, by name; of a device, they are zeros until `store()`."""
        self.memory = {name: host_zeros(tensor) if pins(tensor.device) else tensor.detach() for name, tensor in tensors.items()}
        self._copied = [(tensor.detach(), self.memory[name]) for name, tensor in tensors.items() if pins(tensor.device)]

    def store(self) -> None:
        """The memory has what the tensors have."""
        for tensor, memory in self._copied:
            memory.copy_(tensor, non_blocking=True)
        self._wait_all()

    def load(self) -> None:
        """The tensors have what the memory has."""
        for tensor, memory in self._copied:
            tensor.copy_(memory, non_blocking=True)
        self._wait_all()  # others may write to the memory after this

    def _wait_all(self) -> None:
        for device in {tensor.device for tensor, _ in self._copied}:
            _wait(device)
