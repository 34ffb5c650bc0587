"""Arrays between NumPy, PyTorch and the library: what comes in is checked, and what need not be copied is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from .. import _arrays
from .._arrays import Floats as Floats
from .._arrays import Keys as Keys
from .._arrays import address_of as address_of
from . import _device


def array_of(value: object, name: str, needed: str) -> npt.NDArray[Any]:
    """The array, or the memory of the tensor. Raises TypeError if it is neither, or on a device."""
    if isinstance(value, torch.Tensor):
        if value.device.type != "cpu":
            raise TypeError(f"{name}: the tensor is on {value.device}: call {name}.cpu()")
        array: npt.NDArray[Any] = value.detach().numpy()
        return array
    if isinstance(value, np.ndarray):
        return value
    raise TypeError(f"{name}: a {type(value).__name__} came, an array or a tensor of {needed} is needed: call numpy.asarray({name})")


def whole_numbers(value: object, name: str, why: str) -> npt.NDArray[Any]:
    """An array of whole numbers, none below 0. `why` follows the error of a negative one."""
    if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex() or value.dtype == torch.bool):
        raise TypeError(f"{name}: a tensor of {value.dtype} came, torch.uint64 or torch.int64 is needed: call {name}.to(torch.int64)")
    return _arrays.whole_numbers(array_of(value, name, "uint64 or int64"), name, why)


def keys_of(value: object, name: str) -> Keys:
    """Keys of any shape, as the library takes them."""
    why = f": if they are hashes, call {name}.view(numpy.uint64), or {name}.view(torch.uint64) for a tensor"
    return _arrays.as_keys(whole_numbers(value, name, why))


def offsets_of(value: object, name: str, count: int, include_last: bool) -> npt.NDArray[np.int64]:
    """Where each bag begins in `count` keys, and besides where the last one ends."""
    return _arrays.as_offsets(whole_numbers(value, name, ""), name, count, include_last)


def weights_of(value: object, name: str, shape: tuple[int, ...]) -> torch.Tensor:
    """float32, one for each key. A tensor keeps its gradient."""
    tensor = value if isinstance(value, torch.Tensor) else torch.from_numpy(np.array(array_of(value, name, "float32")))
    if tensor.dtype != torch.float32:
        raise TypeError(f"{name}: {tensor.dtype} came, float32 is needed: call {name}.astype(numpy.float32), or {name}.float() for a tensor")
    if tuple(tensor.shape) != shape:
        raise ValueError(f"{name}: shape {tuple(tensor.shape)} came, {shape} is needed, the shape of the keys")
    return tensor


class _Alias:
    """Shows NumPy the memory of an array that cannot be written as if it could."""

    def __init__(self, array: Floats) -> None:
        self.array = array
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface


def tensor_of(pulled: Floats) -> torch.Tensor:
    """A tensor over the library's memory, which it keeps. Nobody may write to it: PyTorch has no tensors that cannot be written."""
    if pulled.size == 0:
        return torch.empty(pulled.shape)
    return torch.from_numpy(np.asarray(_Alias(pulled)))


def floats_of(gradients: Sequence[torch.Tensor]) -> list[Floats]:
    """Gradients as the library takes them: in main memory, float32, in C order. Not copied if they are so already."""
    return [gradient.numpy() for gradient in _device.download([gradient.detach().to(torch.float32) for gradient in gradients])]
