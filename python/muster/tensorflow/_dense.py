"""A model of Keras, or a module of TensorFlow, whose variables are on the servers."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from .. import _muster
from .._arrays import Floats
from .._dense_models import DenseModel, Part, Tensors
from .._first_values import Given, constant_of, first_values, uniform
from .._session import Initializer, Optimizer, Schedule, Session
from . import _arrays
from ._leaves import Gradient, register

DTYPES = ("float32", "float16", "bfloat16")


@dataclass
class _Part(Part):
    variable: Any
    gradient: Gradient | None = None

    def pull(self, batch: _muster.Batch) -> None:
        pulled = batch.pull(self.tensor)
        if self.keep(pulled) or not self.trained:
            self.variable.assign(self.wanted(pulled))
        self.gradient = register(batch, self.name, self.variable, self.shape) if self.trained and not batch.evaluate else None

    def wanted(self, pulled: Floats) -> tf.Tensor:
        """The value that the variable should have."""
        return tf.cast(pulled.reshape(self.shape), self.variable.dtype)

    def push(self, batch: _muster.Batch) -> None:
        """Pushes its gradient, or what the model has changed itself."""
        if not self.trained:
            return self.push_change(batch, _arrays.floats_of(self.variable))
        gradient = self.gradient.take() if self.gradient is not None else None
        if gradient is not None:
            self.push_gradient(batch, gradient)


@dataclass
class _Kept:
    name: str
    variable: Any
    first: Floats

    def changed(self) -> bool:
        return not _equal(self.variable, self.first)


class Dense(DenseModel[_Part]):
    """A model whose variables are dense tensors on the servers; `dense()` makes it.

    In `parse`, need() asks for them. When the loop comes to the minibatch, what has changed is copied into the model. What
    `apply_gradients()` gets for them is pushed once, when the minibatch is committed. An optimizer of Keras is not needed.

    The model belongs to the thread that runs the loop. Call it with `training=not batch.evaluate`.
    """

    _VARIANCE = "moving_variance"
    _STEADY = "give BatchNormalization a larger momentum, such as 0.99"
    _KEPT = "it was frozen, or because its first values differ: give initializers={{{name!r}: muster.Zero()}}, or keep it constant"

    def __init__(self, model: Any, name: str, parts: list[_Part], kept: list[_Kept]) -> None:
        """Use `dense()`."""
        super().__init__(name, parts, kept)
        self.model = model
        self._checked = False

    def _join(self, batch: _muster.Batch) -> None:
        batch.on_commit(self._push)

    def _push(self) -> None:
        batch, self._batch = self._batch, None
        if batch is None or batch.evaluate:
            return
        if not self._checked:  # a loop that changes variables does so in its first minibatch
            self._check()
            self._checked = True
        for part in self._parts:
            if part.pulled is not None:
                part.push(batch)

    def _check(self) -> None:
        for part in self._parts:
            if part.trained and part.pulled is not None and not _equal(part.variable, part.wanted(part.pulled)):
                raise self._error(
                    f"{part.name} was changed in the minibatch, and the servers change it: leave the optimizer of Keras out, and give the "
                    "gradients to apply_gradients()"
                )
        self._check_kept()


def _equal(one: Any, other: Any) -> bool:
    return np.array_equal(_arrays.floats_of(one), _arrays.floats_of(other))


def dense(
    session: Session,
    model: Any,
    *,
    optimizer: Optimizer = _muster.Sgd(),
    schedule: Schedule = _muster.ConstantRate(),
    initializers: Mapping[str, Initializer] | None = None,
    name: str = "dense",
    warm_start: str = "",
) -> Dense:
    """Registers the variables of a model as dense tensors on the servers.

        model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1)])
        network = muster.tensorflow.dense(session, model, optimizer=muster.Adam(0.001))
        network.need(batch)    # in `parse`

    `model` is a model or a layer of Keras 3 that has been built, or a `tf.Module`. The optimizer runs on the servers. Variables are
    float32 there; the model may have float16 or bfloat16. Their tensors are called "name-path", with "-" for each "/" of the
    variable's path, such as "dense-output-kernel" for the kernel of a layer that is called "output"; every worker must have the
    same model.

    Servers make the first values themselves, from the job's seed: the same for each worker. They do so with the distribution of
    the layer's initializer (uniform or normal), or with a constant if all values are equal. `initializers` gives another one, by
    the variable's path or a pattern ("*/bias"). A variable for which nothing is known is an error.

    Variables that are not trained (the averages of BatchNormalization, for example) are there too, if their first values are equal
    or in `initializers`: servers add up what each minibatch has changed. Others, such as frozen ones, stay as each worker made
    them, and must not change. The state of random numbers belongs to each worker.

    Raises TypeError or ValueError for what cannot be trained so, and `muster.Error` if the session has failed.
    """
    keras = _keras_of(model)
    if keras is None and not isinstance(model, tf.Module):
        raise TypeError(f"model: a {type(model).__name__} came, a model or a layer of Keras, or a tf.Module is needed")
    trained = model.trainable_weights if keras is not None else model.trainable_variables
    others = model.non_trainable_weights if keras is not None else model.non_trainable_variables
    if not trained:
        raise ValueError(f"model: {type(model).__name__} has no variables to train: build it, for example by calling it once, or use it without dense()")
    paths = {id(variable): _path(model, variable) for variable in (*trained, *others)}
    given = Given(initializers, paths.values())
    tensors = Tensors(session, name, schedule, warm_start)

    def register_part(variable: Any, optimizer: Optimizer, initializer: Initializer, is_trained: bool) -> _Part:
        path, shape = paths[id(variable)], _shape(paths[id(variable)], variable)
        return _Part(path, tensors(path, shape, optimizer, initializer), shape, is_trained, variable)

    parts = [register_part(one, optimizer, _initializer(keras, model, paths[id(one)], one, given), True) for one in trained]
    kept = []
    for variable in others:
        path = paths[id(variable)]
        first = given.get(path)
        if first is None and _dtype(variable) in DTYPES:
            first = constant_of(_arrays.floats_of(variable))
        if first is None:
            kept.append(_Kept(path, variable, _arrays.floats_of(variable)))
        else:
            parts.append(register_part(variable, _muster.Sum(), first, False))
    return Dense(model, name, parts, kept)


def _keras_of(model: object) -> Any:
    """The module `keras` if the model is one of it. It is imported already then; this module does not import it."""
    keras = sys.modules.get("keras")
    layers = getattr(keras, "layers", None)
    if layers is None or not isinstance(model, layers.Layer):
        return None
    backend = keras.backend.backend() if keras is not None else ""
    if backend != "tensorflow":
        raise TypeError(f'model: Keras runs on "{backend}" here, "tensorflow" is needed: set the environment variable KERAS_BACKEND=tensorflow')
    return keras


def _path(model: Any, variable: Any) -> str:
    """The name of the variable in the model, without that of the model, which may have a number that Keras counts up."""
    path = getattr(variable, "path", None) or variable.name.partition(":")[0]
    return str(path.removeprefix(f"{model.name}/"))


def _dtype(variable: Any) -> str:
    return str(tf.as_dtype(variable.dtype).name)


def _shape(path: str, variable: Any) -> tuple[int, ...]:
    """The shape, if the variable is one that servers can have."""
    if _dtype(variable) not in DTYPES:
        raise TypeError(f"{path}: {_dtype(variable)} came, {', '.join(DTYPES)} is allowed")
    if not variable.shape.is_fully_defined() or 0 in variable.shape:
        raise ValueError(f"{path}: shape {variable.shape} came, one that is known, with at least one element, is needed")
    return tuple(variable.shape)


def _initializer(keras: Any, model: Any, path: str, variable: Any, given: Given) -> Initializer:
    """Where the values of a variable begin: as the user says, or as the model has them."""
    layer = _layer_of(model, variable) if keras is not None else model

    def distributions() -> Iterator[Initializer]:
        for attribute in (f"{variable.name}_initializer", f"{variable.name.removesuffix('_kernel')}_initializer") if keras is not None else ():
            like = _like(keras, getattr(layer, attribute, None), tuple(variable.shape))
            if like is not None:
                yield like

    return first_values(path, given, lambda: _arrays.floats_of(variable), distributions, f"{type(layer).__name__}.{variable.name}")


def _layer_of(model: Any, variable: Any) -> Any:
    """The innermost layer of Keras that has the variable."""
    # Keras has no public way to the layers of a layer.
    layers = getattr(model, "_flatten_layers", lambda: [model])()
    owners = [layer for layer in layers if any(weight is variable for weight in layer.weights)]
    return min(owners, key=lambda layer: len(layer.weights), default=model)


def _like(keras: Any, initializer: Any, shape: tuple[int, ...]) -> Initializer | None:
    """The initializer of a layer, as servers have it. None: they have none such, for example none of a normal distribution that is cut."""
    kinds = keras.initializers
    if isinstance(initializer, kinds.RandomUniform):
        return _muster.Uniform(low=initializer.minval, high=initializer.maxval)
    if isinstance(initializer, kinds.RandomNormal):
        return _muster.Normal(mean=initializer.mean, stddev=initializer.stddev)
    if not isinstance(initializer, kinds.VarianceScaling) or len(shape) < 2:
        return None
    inputs, outputs = getattr(initializer, "input_axes", None), getattr(initializer, "output_axes", None)
    if inputs is not None and outputs is not None:
        fan_in, fan_out = math.prod(shape[axis] for axis in inputs), math.prod(shape[axis] for axis in outputs)
    else:
        receptive = math.prod(shape[:-2])  # of a convolution
        fan_in, fan_out = shape[-2] * receptive, shape[-1] * receptive
    variance = initializer.scale / {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[initializer.mode]
    if initializer.distribution == "uniform":
        return uniform(math.sqrt(3 * variance))
    return _muster.Normal(stddev=math.sqrt(variance)) if initializer.distribution == "untruncated_normal" else None
