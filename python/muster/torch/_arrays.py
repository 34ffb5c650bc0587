"""Arrays between NumPy, PyTorch and the library: what comes in is checked, and what need not be copied is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

Keys = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float32]


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
    array = array_of(value, name, "uint64 or int64")
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name}: an array of {array.dtype} came, uint64 or int64 is needed: call {name}.astype(numpy.uint64)")
    if array.dtype.kind == "i" and array.size > 0 and array.min() < 0:
        position = int(np.argmax(array.ravel() < 0))
        raise ValueError(f"{name}: {array.ravel()[position]} came at position {position}, 0 to {2**64 - 1} is allowed{why}")
    return array


def keys_of(value: object, name: str) -> Keys:
    """Keys of any shape, as the library takes them."""
    array = whole_numbers(value, name, f": if they are hashes, call {name}.view(numpy.uint64), or {name}.view(torch.uint64) for a tensor")
    if array.dtype == np.uint64:
        return array
    return array.view(np.uint64) if array.dtype == np.int64 else array.astype(np.uint64)


def offsets_of(value: object, name: str, count: int, include_last: bool) -> npt.NDArray[np.int64]:
    """Where each bag begins in `count` keys, and besides where the last one ends."""
    array = whole_numbers(value, name, "")
    if array.ndim != 1:
        raise ValueError(f"{name}: shape {array.shape} came, one dimension is needed")
    offsets = array.astype(np.int64)
    if not include_last:
        offsets = np.append(offsets, count)
    if array.size == 0 and (include_last or count > 0):
        raise ValueError(f"{name}: none came for {count} keys, at least one is needed")
    if offsets[0] != 0:
        raise ValueError(f"{name}: the first one is {offsets[0]}, and must be 0")
    if offsets[-1] != count:
        raise ValueError(f"{name}: the last one is {offsets[-1]}, and must be the number of keys, {count}")
    falls = np.flatnonzero(np.diff(offsets) < 0)
    if falls.size > 0:
        at = int(falls[0])
        if not include_last and at == offsets.size - 2:
            raise ValueError(f"{name}: {offsets[at]} came at position {at}, at most the number of keys, {count}, is allowed")
        raise ValueError(f"{name}: {offsets[at]} at position {at} is followed by {offsets[at + 1]}: they must not decrease")
    return offsets


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


def address_of(pulled: Floats) -> int:
    """Where the values are."""
    address: int = pulled.__array_interface__["data"][0]
    return address


def tensor_of(pulled: Floats) -> torch.Tensor:
    """A tensor over the library's memory, which it keeps. Nobody may write to it: PyTorch has no tensors that cannot be written."""
    if pulled.size == 0:
        return torch.empty(pulled.shape)
    return torch.from_numpy(np.asarray(_Alias(pulled)))


def floats_of(gradient: torch.Tensor) -> Floats:
    """A gradient as the library takes it: in main memory, float32, in C order. Not copied if it is so already."""
    array: Floats = gradient.detach().to(device="cpu", dtype=torch.float32).contiguous().numpy()
    return array
