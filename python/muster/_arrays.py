"""Keys and offsets that a user gives, checked: what the modules of PyTorch and of TensorFlow have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float32]


def whole_numbers(array: npt.NDArray[Any], name: str, why: str) -> npt.NDArray[Any]:
    """The array, if it has whole numbers, none below 0. `why` follows the error of a negative one."""
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name}: an array of {array.dtype} came, uint64 or int64 is needed: call {name}.astype(numpy.uint64)")
    if array.dtype.kind == "i" and array.size > 0 and array.min() < 0:
        position = int(np.argmax(array.ravel() < 0))
        raise ValueError(f"{name}: {array.ravel()[position]} came at position {position}, 0 to {2**64 - 1} is allowed{why}")
    return array


def as_keys(array: npt.NDArray[Any]) -> Keys:
    """Whole numbers as the library takes them, of any shape."""
    if array.dtype == np.uint64:
        return array
    return array.view(np.uint64) if array.dtype == np.int64 else array.astype(np.uint64)


def as_offsets(array: npt.NDArray[Any], name: str, count: int, include_last: bool) -> npt.NDArray[np.int64]:
    """Where each bag begins in `count` keys, and besides where the last one ends. `array` has whole numbers."""
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


def address_of(pulled: Floats) -> int:
    """Where the values are: while it is the same, so are they."""
    address: int = pulled.__array_interface__["data"][0]
    return address
