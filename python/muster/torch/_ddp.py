"""ElasticDDP: a module of PyTorch that the members of a group train together."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

import muster
from muster._group import Parse, SumKind, by_dataset

from . import _device
from ._buffers import Buffers
from ._loss_scale import LossScale, enabled
from ._modules import check_module, check_optimizer
from ._optimizer_state import OptimizerState, Rates, parameters_of

_SEED_BITS = 2**63 - 1


class ElasticStep:
    """One step of all members; `ElasticDDP.steps()` gives it."""

    def __init__(self, ddp: ElasticDDP, step: muster.GroupStep) -> None:
        self._ddp, self._step = ddp, step

    @property
    def step(self) -> int:
        """The number of the step in the job, from 1, evaluations included."""
        return self._step.step

    @property
    def epoch(self) -> int:
        """The epoch of the step's data, from 0."""
        return self._step.epoch

    @property
    def evaluate(self) -> bool:
        """True for data of a dataset of mode `evaluate`: do not call backward()."""
        return self._step.evaluate

    @property
    def records(self) -> int:
        """The records of the whole step, over all members; exact after `commit()`."""
        return self._step.records

    def batches(self, parse: Parse | Mapping[str, Parse] | None = None) -> Iterator[muster.Batch]:
        """The minibatches of this member; see `muster.GroupStep.batches`. Gradients are cleared before each."""
        for batch in self._step.batches(self._ddp._seeded(by_dataset(parse))):
            with self._ddp._minibatch(self._step, batch):
                yield batch

    def commit(self) -> bool:
        """Waits until every member has the mean gradients, and makes the step of the optimizer and of the schedulers.

        True: the step has happened. False: it comes again, because a member joined or died, or the step failed; go on with
        the loop over the steps. In an evaluation, nothing changes.

        If the optimizer raises, so does this call, and the next step copies the state from another member.
        """
        return self._ddp._commit(self._step)

    def fail(self, reason: str) -> None:
        """Reports that the trainer failed on this step. All members try it again."""
        self._step.fail(reason)


class ElasticDDP:
    """Trains a module as DistributedDataParallel does, with members that may die and join at any time.

        ddp = muster.torch.ElasticDDP(module, optimizer, session.group())
        for step in ddp.steps():
            for batch in step.batches(parse):
                with batch:
                    loss = loss_of(module(inputs), labels)
                    if not step.evaluate:
                        loss.backward()
            step.commit()

    Gradients are handed over while backward() computes, and `commit()` calls `optimizer.step()` with their mean over all
    records of the step. Parameters, buffers, the optimizer's state and that of schedulers are registered with the group:
    members that join copy them.

    After backward(), `grad` is None: the gradient is the group's. Unused parameters have gradients of zero. With the default
    `sum`, weights have the same bits whoever has computed what, if the module computes the same bits in every process: on
    processors of one kind, with the same number of threads (`torch.set_num_threads`), and random numbers from torch alone.

    Not thread-safe: it belongs to the thread that calls `steps()`.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        group: muster.Group,
        *,
        schedulers: Sequence[Any] = (),
        reduction: str = "mean",
        before_step: Callable[[], object] | None = None,
        seed: bool = True,
        sum: SumKind = "fixed_point",
        fraction_bits: int = 30,
        scaler: torch.amp.GradScaler | None = None,
    ) -> None:
        """Registers the module with the group; it must have the same parameters and the same initial values in every member,
        for example by `torch.manual_seed`. All tensors are dense, and on the CPU or a GPU. Of a GPU, gradients are handed over
        at the end of the minibatch, and the state is copied to main memory after each step.

        optimizer: any of torch.optim that needs no closure, with all parameters of the module that require a gradient.
        schedulers: of learning rates, by step; `commit()` calls their `step()`.
        reduction: what the loss of a minibatch is over its records, "mean" or "sum". The gradient of a mean counts as often as
            its minibatch has records.
        before_step: called in `commit()` before the optimizer, when `grad` of each parameter is the mean gradient: for
            clipping by norm. It may depend on nothing but the state and the gradients.
        seed: torch.manual_seed is called for each minibatch, with `batch.seed`, so that dropout is the same whoever computes it.
        sum, fraction_bits: how gradients are added; see `muster.Group.add_bucket`. With 30 bits, a gradient summed over a
            minibatch must be below 1e6, and is rounded by 5e-10 at most.
        scaler: of a loss in float16: call `scaler.scale(loss).backward()`, and neither its step() nor its update(), which
            `commit()` does. Its scale is the same in all members. If a gradient of any member is infinite or NaN, all of them
            skip the step: it has happened, and has changed nothing but the scale.

        Raises ValueError, TypeError or RuntimeError if something of it cannot be trained, and says what to do.
        """
        if reduction not in ("mean", "sum"):
            raise ValueError(f'reduction: {reduction!r} came, "mean" or "sum" is needed')
        self.module, self.optimizer, self.group = module, optimizer, group
        self.schedulers = tuple(schedulers)
        for scheduler in self.schedulers:
            if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
                raise TypeError("schedulers: ReduceLROnPlateau needs a metric, which a member that joins does not have: take another one")
        self._mean, self._before_step, self._seed = reduction == "mean", before_step, seed
        self._names = check_module(module, ("cpu", "cuda"))
        self._trained = check_optimizer(optimizer, self._names)
        self._optimizer_state = OptimizerState(optimizer, self._names)
        self._scaler = enabled(scaler)
        self._loss_scale = None if self._scaler is None else LossScale(self._scaler, group)
        self._rates = Rates(optimizer, [*self.schedulers, *([self._scaler] if self._scaler is not None else [])])
        self._register(sum, fraction_bits)
        self._current: tuple[muster.GroupStep, muster.Batch] | None = None
        self._given: set[torch.nn.Parameter] = set()
        self._leaving: list[tuple[torch.nn.Parameter, torch.Tensor]] = []  # gradients on a device
        self._begun = self._applying = self._overflowed = False
        self._accumulates = False
        for parameter in self._trained:
            parameter.register_post_accumulate_grad_hook(self._on_gradient)  # type: ignore[no-untyped-call]
        optimizer.register_step_pre_hook(self._on_optimizer_step)

    def _register(self, sum: SumKind, fraction_bits: int) -> None:
        # backward() has the gradients of the last layers first.
        self._buckets = {
            parameter: self.group.add_bucket(f"gradient of {self._names[parameter]}", parameter.numel(), type=sum, fraction_bits=fraction_bits)
            for parameter in reversed(self._trained)
        }
        self._buffers = Buffers(self.module, self.group, sum)
        self._parameters = _device.Mirror({name: parameter for parameter, name in self._names.items()})
        memory = {**self._parameters.memory, **self._buffers.memory(), **self._optimizer_state.memory, "rates": self._rates.memory}
        for name, tensor in memory.items():
            self.group.add_state(name, tensor)  # type: ignore[arg-type]
        self._places = {parameter: (parameter.shape, parameter.data_ptr()) for parameter in self._names}
        self._versions = {parameter: parameter._version for parameter in self._names}
        self._means = {parameter: torch.empty(parameter.shape, dtype=torch.float32) for parameter in self._trained}

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """The module's output."""
        return self.module(*arguments, **keywords)

    def steps(self) -> Iterator[ElasticStep]:
        """The steps, until the job is over or drains, or this worker leaves. Waits while there is none."""
        if not self._begun:
            self._take_state()
        self._begun = True
        for step in self.group.steps():
            if step.state_copied:
                self._load_state()
            yield ElasticStep(self, step)
        if self.group.has_final_state():  # it may have been copied after the last step of this process
            self._load_state()

    def _load_state(self) -> None:
        """After the registered memory was written by others."""
        self._parameters.load()
        self._optimizer_state.load()
        self._rates.load()
        if self._loss_scale is not None:
            self._loss_scale.read()
        self._buffers.load()
        self._versions = {parameter: parameter._version for parameter in self._names}

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside, backward() accumulates in `grad`. The next backward() outside, or the end of the minibatch, hands it over.

        For several backward() in one minibatch. For larger steps, set `spec.group.globalBatch`: a step has any number of
        minibatches, and their gradients are added.
        """
        self._accumulates = True
        try:
            yield
        finally:
            self._accumulates = False

    def state_dict(self) -> dict[str, Any]:
        """{"module", "optimizer", "schedulers"}, and "scaler" if there is one: what plain PyTorch loads.

        Tensors share the memory: save or copy them. Take it between two steps, or after the last one.
        """
        return {
            "module": self.module.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedulers": [scheduler.state_dict() for scheduler in self.schedulers],
            **({} if self._scaler is None else {"scaler": self._scaler.state_dict()}),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Before the first step, the same in every member. A member of a group that has begun copies its state all the same."""
        if self._begun:
            raise RuntimeError("load_state_dict: the group has begun, and its members have its state: load before the first step")
        self.module.load_state_dict(state["module"])
        self.optimizer.load_state_dict(state["optimizer"])
        for scheduler, own in zip(self.schedulers, state["schedulers"], strict=True):
            scheduler.load_state_dict(own)
        if self._scaler is not None and "scaler" in state:
            self._scaler.load_state_dict(state["scaler"])
        self._take_state()

    def _take_state(self) -> None:
        """What the user has changed before the first step counts."""
        if self._loss_scale is not None:
            self._loss_scale.read()
        self._check()
        self._parameters.store()
        self._optimizer_state.store()
        self._rates.store()
        self._buffers.store()
        self._versions = {parameter: parameter._version for parameter in self._names}

    @contextlib.contextmanager
    def _minibatch(self, step: muster.GroupStep, batch: muster.Batch) -> Iterator[None]:
        if self._seed:
            torch.manual_seed(batch.seed & _SEED_BITS)
        self._drop_gradients()
        self._given.clear()
        self._leaving.clear()
        self._overflowed = False
        self._current = (step, batch)
        try:
            yield
            if not step.evaluate:
                self._end_minibatch(step, batch)
        finally:
            self._current = None
            self._drop_gradients()
            self._buffers.restore()

    def _end_minibatch(self, step: muster.GroupStep, batch: muster.Batch) -> None:
        """Hands over what backward() has not."""
        for parameter in self._trained:
            if parameter not in self._given and parameter.grad is not None:
                self._give(parameter, step, batch)
        for (parameter, _), gradient in zip(self._leaving, _device.download([gradient for _, gradient in self._leaving])):
            self._hand_over(parameter, gradient, step)
        self._leaving.clear()
        if self._overflowed and self._loss_scale is not None:
            self._loss_scale.add_overflow(step)
        else:
            self._buffers.add_changes(step, len(batch))

    def _seeded(self, parse: Parse | None) -> Parse | None:
        """`parse`, whose random numbers do not depend on what ran before it."""
        if parse is None or not self._seed:
            return parse
        function = parse

        def call(batch: muster.Batch) -> object:
            torch.manual_seed(batch.seed & _SEED_BITS)
            return function(batch)

        return call

    def _drop_gradients(self) -> None:
        for parameter in self._trained:
            parameter.grad = None

    def _on_gradient(self, parameter: torch.Tensor) -> None:
        """backward() has added to `grad`."""
        assert isinstance(parameter, torch.nn.Parameter)
        if not self._begun:
            return
        if self._accumulates:
            if self._current is not None and parameter in self._given:
                raise RuntimeError("no_sync() after a backward() outside of it, whose gradients are handed over: the last backward() must be outside")
            return
        if self._current is None:
            raise RuntimeError("backward() outside of the loop over step.batches(): its gradients would be in no step")
        step, batch = self._current
        if step.evaluate:
            raise RuntimeError("backward() in an evaluation, which has no gradients: check step.evaluate before")
        if parameter in self._given:
            raise RuntimeError("backward() a second time in one minibatch: put all but the last into `with ddp.no_sync():`")
        self._give(parameter, step, batch)

    def _give(self, parameter: torch.nn.Parameter, step: muster.GroupStep, batch: muster.Batch) -> None:
        gradient = parameter.grad
        assert gradient is not None
        if gradient.is_sparse:
            raise TypeError(f"parameter {self._names[parameter]!r} has a sparse gradient: call torch.nn.Embedding with sparse=False")
        gradient = gradient.detach().to(torch.float32).contiguous()
        factor = (len(batch) if self._mean else 1) / (1 if self._loss_scale is None else self._loss_scale.factor)
        if factor != 1:
            # Not in place: autograd may have given the same memory to another parameter.
            gradient = gradient * factor
        self._given.add(parameter)
        parameter.grad = None
        if _device.pins(gradient.device):
            self._leaving.append((parameter, gradient))
        else:
            self._hand_over(parameter, gradient, step)

    def _hand_over(self, parameter: torch.nn.Parameter, gradient: torch.Tensor, step: muster.GroupStep) -> None:
        """The gradient is in main memory."""
        if self._loss_scale is not None and not bool(torch.isfinite(gradient).all()):
            self._overflowed = True
            return
        step.add(self._buckets[parameter], gradient)  # type: ignore[arg-type]

    def _on_optimizer_step(self, *_: object) -> None:
        if self._begun and not self._applying:
            raise RuntimeError("optimizer.step() is called by step.commit(), with the gradients of all members: leave it out")

    def _commit(self, step: muster.GroupStep) -> bool:
        self._current = None
        try:
            self._check()
        except Exception as error:
            step.fail(f"{type(error).__name__}: {error}")
            raise
        return step.commit(lambda: self._apply(step))

    def _apply(self, step: muster.GroupStep) -> None:
        if self._seed:
            torch.manual_seed(step.step)
        if self._loss_scale is None or self._loss_scale.update(step):
            self._optimize(step)
        self._rates.store()

    def _optimize(self, step: muster.GroupStep) -> None:
        for parameter in self._trained:
            mean = self._means[parameter]
            step.sum(self._buckets[parameter], mean)  # type: ignore[arg-type]
            parameter.grad = _device.upload(mean.div_(step.records).to(parameter.dtype), parameter.device)
        self._applying = True
        try:
            if self._before_step is not None:
                self._before_step()
            self.optimizer.step()
            for scheduler in self.schedulers:
                scheduler.step()
        finally:
            self._applying = False
            self._drop_gradients()
        self._buffers.apply(step)
        self._optimizer_state.store()
        self._parameters.store()
        self._versions = {parameter: parameter._version for parameter in self._names}

    def _check(self) -> None:
        """Raises if the module or the optimizer is not what was registered."""
        for name, parameter in self.module.named_parameters():
            if parameter not in self._names:
                raise RuntimeError(f"parameter {name!r} is not registered with the group: make ElasticDDP when the module is complete")
        if sum(1 for _ in parameters_of(self.optimizer)) != self._optimizer_state.parameters:
            raise RuntimeError("optimizer: its parameters are not those that it had when ElasticDDP was made: add groups before")
        for parameter, (shape, place) in self._places.items():
            name = self._names[parameter]
            if parameter.requires_grad != (parameter in self._buckets):
                raise RuntimeError(f"parameter {name!r}: its requires_grad was changed after ElasticDDP was made: change it before")
            if parameter.shape != shape:
                raise RuntimeError(
                    f"parameter {name!r} has the shape {tuple(parameter.shape)}, and was registered with {tuple(shape)}: the shapes of a "
                    "group cannot change"
                )
            if parameter.data_ptr() != place:
                raise RuntimeError(
                    f"parameter {name!r} has other memory than when ElasticDDP was made: move or convert the module before, and change "
                    "values in place, for example by copy_()"
                )
            if self._begun and parameter._version != self._versions[parameter]:
                raise RuntimeError(
                    f"parameter {name!r} was changed outside of step.commit(), which would be this member's alone: change it before the "
                    "first step, or in before_step"
                )
        self._buffers.check()
        if self._loss_scale is not None:
            self._loss_scale.check()
