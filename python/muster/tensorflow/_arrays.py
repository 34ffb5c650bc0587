"""Arrays between NumPy, TensorFlow and the library."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from .. import _arrays
from .._arrays import Floats, Keys


def whole_numbers(value: object, name: str, why: str) -> npt.NDArray[Any]:
    """An array of whole numbers, none below 0: the array itself, or the values of a tensor."""
    if isinstance(value, (tf.RaggedTensor, tf.SparseTensor)):
        raise TypeError(f"{name}: a {type(value).__name__} came, which only an EmbeddingBag can use: give its values, or use one")
    if tf.is_tensor(value) or isinstance(value, tf.Variable):
        value = np.asarray(value)
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{name}: a {type(value).__name__} came, an array or a tensor of uint64 or int64 is needed: call numpy.asarray({name})")
    return _arrays.whole_numbers(value, name, why)


def keys_of(value: object, name: str) -> Keys:
    """Keys of any shape, as the library takes them."""
    why = f": if they are hashes, call {name}.view(numpy.uint64), or tf.bitcast({name}, tf.uint64) for a tensor"
    return _arrays.as_keys(whole_numbers(value, name, why))


def offsets_of(value: object, name: str, count: int) -> npt.NDArray[np.int64]:
    """Where each bag begins in `count` keys, and besides where the last one ends."""
    return _arrays.as_offsets(whole_numbers(value, name, ""), name, count, False)


def weights_of(value: Any, name: str, shape: tuple[int, ...]) -> tf.Tensor:
    """float32, one for each key, of this shape; of a ragged or a sparse tensor, its values. A tensor keeps its gradient."""
    if isinstance(value, (tf.RaggedTensor, tf.SparseTensor)):
        value = value.values
    if not isinstance(value, np.ndarray) and not tf.is_tensor(value) and not isinstance(value, tf.Variable):
        raise TypeError(f"{name}: a {type(value).__name__} came, an array or a tensor of float32 is needed: call numpy.asarray({name})")
    tensor = tf.convert_to_tensor(value)
    if tensor.dtype != tf.float32:
        raise TypeError(f"{name}: {tensor.dtype.name} came, float32 is needed: call {name}.astype(numpy.float32), or tf.cast for a tensor")
    if tuple(tensor.shape) != shape:
        raise ValueError(f"{name}: shape {tuple(tensor.shape)} came, {shape} is needed, the shape of the keys")
    return tensor


def floats_of(value: Any) -> Floats:
    """What a tensor, a variable or the slices of a gradient hold: float32, in C order, in the same shape."""
    if isinstance(value, tf.IndexedSlices):
        value = tf.convert_to_tensor(value)
    return np.asarray(np.asarray(value), np.float32, order="C")
