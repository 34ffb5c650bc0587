"""A module of PyTorch whose parameters are on the servers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from .. import _muster
from .._dense_models import DenseModel, Part, Tensors
from .._first_values import Given, constant_of, first_values, uniform
from .._session import Initializer, Optimizer, Schedule, Session
from . import _arrays, _device
from ._pushes import Outgoing, Pushes

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
COUNTS = (torch.int64, torch.int32)  # of buffers: exact to 2^24


@dataclass
class _Part(Part):
    """A parameter, or a buffer, which is not trained."""

    place: dict[str, Any]  # where its module has it
    key: str
    # If nobody wrote to the module's since pull(), there is nothing to copy. For buffers the tensor's version does not tell: a batch
    # normalisation writes its statistics without counting it.
    version: int = -1

    def value(self) -> torch.Tensor:
        value: torch.Tensor = self.place[self.key]
        if value.shape != self.shape:
            raise ValueError(
                f"{self.name} has shape {tuple(value.shape)} now, and had {self.shape} when it was registered: a shape cannot change"
            )
        return value

    def pull(self, batch: _muster.Batch) -> None:
        value, pulled = self.value(), batch.pull(self.tensor)
        if self.trained:
            value.grad = None
        if self.keep(pulled) or not self.trained or value._version != self.version:
            _device.upload_into(value, _arrays.tensor_of(pulled) if self.shape else _arrays.tensor_of(pulled)[0])
        self.version = value._version

    def outgoing(self) -> Outgoing | None:
        """What leaves for the servers: the gradient, which is then None; or a buffer, which its module changes itself."""
        value = self.value()
        if not self.trained:
            return None if self.pulled is None else Outgoing(value, self.push_change, gradient=False)
        gradient, value.grad = value.grad, None
        return None if gradient is None else Outgoing(gradient, self.push_gradient, gradient=True)


@dataclass
class _Kept:
    name: str
    value: torch.Tensor
    version: int
    first: torch.Tensor | None  # of a buffer, whose version does not tell

    def changed(self) -> bool:
        return self.value._version != self.version if self.first is None else not torch.equal(self.value, self.first)


class Dense(DenseModel[_Part]):
    """A module whose parameters and buffers are dense tensors on the servers; `dense()` makes it.

    In `parse`, need() asks for them. When the loop comes to the minibatch, what has changed is copied into the module. When the
    minibatch is committed, the gradients are pushed once, as sums, and `grad` is None again. An optimizer of PyTorch is not needed.

    The module belongs to the thread that runs the loop. For evaluation, call `module.eval()` yourself.
    """

    _MODEL = "module"
    _VARIANCE = "running_var"
    _STEADY = "give BatchNorm a smaller momentum, such as 0.01"
    _KEPT = (
        "it was frozen, or because the first values of the buffer differ: give initializers={{{name!r}: muster.Zero()}} for a buffer, or "
        "register it with persistent=False if each worker may have its own"
    )

    def __init__(self, module: nn.Module, name: str, parts: list[_Part], kept: list[_Kept]) -> None:
        """Use `dense()`."""
        super().__init__(name, parts, kept)
        self.module = module
        for value in self._leaves():
            value.register_post_accumulate_grad_hook(self._check_gradient)  # type: ignore[no-untyped-call]

    def _begin(self, batch: _muster.Batch) -> None:
        with torch.no_grad():
            super()._begin(batch)

    def _join(self, batch: _muster.Batch) -> None:
        Pushes.of(batch).add(batch, self)

    def _leaves(self) -> list[torch.Tensor]:
        """Tensors whose `grad` is pushed when the minibatch is committed."""
        return [part.value() for part in self._parts if part.trained]

    def _outgoing(self) -> Iterator[Outgoing]:
        """For the commit of the minibatch, which is then over."""
        self._batch = None
        self._check_kept()
        for part in self._parts:
            outgoing = part.outgoing()
            if outgoing is not None:
                yield outgoing

    def _check_gradient(self, _parameter: torch.Tensor) -> None:
        if self._batch is None:
            raise self._error(
                "a gradient came outside of a minibatch that has asked for it: call need(batch) in `parse`, and backward() before the minibatch ends"
            )


def dense(
    session: Session,
    module: nn.Module,
    *,
    optimizer: Optimizer = _muster.Sgd(),
    schedule: Schedule = _muster.ConstantRate(),
    initializers: Mapping[str, Initializer] | None = None,
    name: str = "dense",
    warm_start: str = "",
) -> Dense:
    """Registers the parameters and buffers of a module as dense tensors on the servers.

        network = muster.torch.dense(session, module, optimizer=muster.Adam(0.001))
        network.need(batch)    # in `parse`

    The optimizer runs on the servers. Parameters are float32 there; the module may have float16 or bfloat16. Their tensors are
    called "name-parameter", with "-" for each "."; every worker must have the same module.

    Servers make the first values themselves, from the job's seed: the same for each worker. They do so with the distribution that
    PyTorch gives to this kind of layer, or with a constant if all values are equal. `initializers` gives another one, by the
    parameter's name or a pattern ("*.bias"). A parameter for which nothing is known is an error.

    Persistent buffers (of BatchNorm, for example) are there too: servers add up what each minibatch has changed. Frozen parameters,
    and buffers whose first values differ and are not in `initializers`, stay as each worker made them, and must not change.

    Raises TypeError or ValueError for what cannot be trained so, and `muster.Error` if the session has failed.
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"module: a {type(module).__name__} came, a torch.nn.Module is needed")
    module = getattr(module, "_orig_mod", module)  # what torch.compile returns has other names
    trained = {key: value for key, value in module.named_parameters() if value.requires_grad}
    if not trained:
        raise ValueError(f"module: {type(module).__name__} has no parameters to train: use it without dense()")
    given = Given(initializers, module.state_dict())
    register = _Register(module, Tensors(session, name, schedule, warm_start))
    parts = [register(key, value, optimizer, _initializer(module, key, value, given), True) for key, value in trained.items()]
    kept = []
    for key, value in module.state_dict(keep_vars=True).items():
        if key in trained or any(value is one for one in trained.values()):
            continue
        first = None if isinstance(value, nn.Parameter) else _first_value(key, value, given)
        if first is None:
            kept.append(_Kept(key, value, value._version, None if isinstance(value, nn.Parameter) else value.clone()))
        else:
            parts.append(register(key, value, _muster.Sum(), first, False))
    return Dense(module, name, parts, kept)


@dataclass
class _Register:
    """Makes the parts."""

    module: nn.Module
    tensors: Tensors

    def __call__(self, key: str, value: torch.Tensor, optimizer: Optimizer, initializer: Initializer, trained: bool) -> _Part:
        allowed = DTYPES if trained else DTYPES + COUNTS
        if value.dtype not in allowed:
            raise TypeError(f"{key}: {value.dtype} came, {', '.join(map(str, allowed))} is allowed: call module.float()")
        if value.is_meta or value.layout != torch.strided:
            raise TypeError(f"{key}: it is on the device {value.device} with layout {value.layout}: a strided tensor with memory is needed")
        if value.numel() == 0:
            raise ValueError(f"{key}: shape {tuple(value.shape)} came, at least one element is needed")
        shape = tuple(value.shape)
        path, _, last = key.rpartition(".")
        owner = self.module.get_submodule(path)
        tensor = self.tensors(key, shape, optimizer, initializer)
        return _Part(key, tensor, shape, trained, owner._parameters if trained else owner._buffers, last)


def _first_value(name: str, buffer: torch.Tensor, given: Given) -> Initializer | None:
    """None: each worker keeps its own."""
    chosen = given.get(name)
    if chosen is not None or buffer.dtype not in DTYPES + COUNTS:
        return chosen
    return constant_of(_values(buffer))


def _initializer(module: nn.Module, name: str, value: torch.Tensor, given: Given) -> Initializer:
    """Where the values of a parameter begin: as the user says, or as the module has them."""
    path, _, last = name.rpartition(".")
    owner = module.get_submodule(path)

    def distributions() -> Iterator[Initializer]:
        for kinds, default in _DEFAULTS:
            if isinstance(owner, kinds):
                initializer = default(owner, last, value)
                if initializer is not None:
                    yield initializer

    return first_values(name, given, lambda: _values(value), distributions, f"{type(owner).__name__}.{last}")


def _values(value: torch.Tensor) -> _arrays.Floats:
    values: _arrays.Floats = value.detach().to(device="cpu", dtype=torch.float32).numpy()
    return values


def _of_layer(owner: Any, _last: str, _value: torch.Tensor) -> Initializer | None:
    """Weight and bias are uniform in 1 / sqrt(inputs of an output)."""
    fan_in, _ = nn.init._calculate_fan_in_and_fan_out(owner.weight)
    return uniform(1 / math.sqrt(fan_in)) if fan_in > 0 else None


def _of_recurrent(owner: Any, _last: str, _value: torch.Tensor) -> Initializer | None:
    return uniform(1 / math.sqrt(owner.hidden_size))


def _of_attention(_owner: Any, last: str, value: torch.Tensor) -> Initializer | None:
    return uniform(math.sqrt(6 / sum(value.shape))) if last.endswith("proj_weight") else None


def _of_embedding(owner: Any, _last: str, _value: torch.Tensor) -> Initializer | None:
    """None with a padding_idx, whose row is 0: servers would fill it."""
    return _muster.Normal(stddev=1.0) if owner.padding_idx is None else None


_Default = Callable[[Any, str, torch.Tensor], "Initializer | None"]
_DEFAULTS: tuple[tuple[tuple[type[nn.Module], ...], _Default], ...] = (
    ((nn.Linear, nn.Bilinear, nn.modules.conv._ConvNd), _of_layer),
    ((nn.RNNBase, nn.RNNCellBase), _of_recurrent),
    ((nn.MultiheadAttention,), _of_attention),
    ((nn.Embedding, nn.EmbeddingBag), _of_embedding),
)
