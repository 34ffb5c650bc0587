"""Synchronous groups: all members have the same state, and change it together, step by step."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union

from . import _muster
from ._muster import SumBucket

if TYPE_CHECKING:
    import numpy.typing

SumKind = Literal["fixed_point", "float32", "bfloat16"]
OuterOptimizer = Union[_muster.OuterNesterov, _muster.OuterSgd, _muster.OuterAdam]
Parse = Callable[[_muster.Batch], object]
_Function = TypeVar("_Function")


def function_for(functions: Mapping[str, _Function], dataset: str) -> _Function:
    """That of the dataset."""
    if dataset not in functions:
        raise KeyError(f"`parse` has no function for the dataset {dataset!r}, only for {sorted(functions)}")
    return functions[dataset]


def by_dataset(parse: Parse | Mapping[str, Parse] | None) -> Parse | None:
    """One function of a mapping that has a function for each dataset."""
    if not isinstance(parse, Mapping):
        return parse
    functions = parse

    def call(batch: _muster.Batch) -> object:
        return function_for(functions, batch.dataset)(batch)

    return call


class GroupStep:
    """One step of a group; `Group.steps()` gives it. Only the thread of the loop may use it, except for `add()`."""

    def __init__(self, step: _muster.GroupStep) -> None:
        """Use `Group.steps()`."""
        self._step = step

    @property
    def step(self) -> int:
        """The number of the step in the job, from 1, evaluations included. Of a replay, that of the next step."""
        return self._step.step

    @property
    def epoch(self) -> int:
        """The epoch of the step's data, from 0."""
        return self._step.epoch

    @property
    def evaluate(self) -> bool:
        """True for data of a dataset of mode `evaluate`: there are no sums, and `commit()` does not call `apply`."""
        return self._step.evaluate

    @property
    def replay(self) -> bool:
        """Only with parameter servers: the step has happened before, and only its pushes to tables are done again.

        `add()` does nothing then, and `commit()` returns False.
        """
        return self._step.replay

    @property
    def state_copied(self) -> bool:
        """True if the registered state was copied from another process, or a checkpoint, since the step before."""
        return self._step.state_copied

    @property
    def records(self) -> int:
        """The records of the whole step, over all members: in `apply`, divide by it to get the mean gradient."""
        return self._step.records

    def batches(self, parse: Parse | Mapping[str, Parse] | None = None) -> Iterator[_muster.Batch]:
        """The minibatches of this member, once; there may be none. `parse` is that of `Session.batches`.

        If an exception leaves `with batch:`, the step fails with its text, and is tried again. If the loop is left early, it
        fails, too. `batch.header` is empty here, and `batch.shard` is the number of the step. `batch.push` is for jobs with
        parameter servers.
        """
        with contextlib.closing(self._step.loop(by_dataset(parse))) as loop:
            while (batch := loop.next()) is not None:
                yield batch

    def add(self, bucket: SumBucket, gradient: numpy.typing.NDArray[numpy.float32]) -> None:
        """Adds the gradient of the loop's current minibatch: the sum over its records, not the mean.

        `gradient` is float32, in C order, of any shape with as many elements as the bucket; a tensor of PyTorch without a
        gradient will do. It is copied, and the call never waits for other members. Call it at most once per minibatch and
        bucket; without a call, zeros are added. Several threads may call it for different buckets.

        With NaN, infinity, or a number that is too large for the bucket's type, the step fails, and the reason names bucket
        and element. After a second call in one minibatch, or outside of the loop, the session fails.
        """
        self._step.add(bucket, gradient)

    def put(self, bucket: SumBucket, sum: numpy.typing.NDArray[numpy.float32]) -> None:
        """Of a bucket with `after_loop`, once between the loop and `commit()`: the sum over all minibatches of the loop."""
        self._step.put(bucket, sum)

    def commit(self, apply: Callable[[], object] | None = None) -> bool:
        """Waits until every member has the sums, calls `apply()` once, and returns True: the step has happened.

        False: it has not happened yet, because a member joined or died, or the step failed. It then comes again, with those
        minibatches that this member has not computed; so go on with the loop over the steps.

        `apply` changes the registered state, and may depend on nothing but that state, `sum()`, `records`, `step` and
        `epoch`: members that join call it for steps whose data they have never seen, and must come to the same bits. The
        state must not change anywhere else.

        If `apply` raises, so does this call. The state is half changed then, and the next step copies it from another member
        or a checkpoint.
        """
        return self._step.commit(apply)

    def sum(self, bucket: SumBucket, out: numpy.typing.NDArray[numpy.float32] | None = None) -> numpy.typing.NDArray[numpy.float32]:
        """Only in `apply`: the sum of the bucket over all minibatches of the step.

        It is float32 of shape `[elements]`, a new array; or written to `out`, which is float32, in C order, of any shape
        with as many elements, and is returned.
        """
        result: numpy.typing.NDArray[numpy.float32] = self._step.sum(bucket, out)
        return result

    def fail(self, reason: str) -> None:
        """Reports that the trainer failed on this step. All members try it again. Its loop ends, `commit()` returns False."""
        self._step.fail(reason)


class Group:
    """This process's part in the group of its job (`spec.group` of the job file); `Session.group()` makes it.

    Register all buckets and all state first, in the same order and with the same names, types and sizes in every member: a
    process that differs is refused with the first difference. From the first step on, only the thread that asked for it may
    use the group. A process has one at a time: `close()` leaves it, as the end of a `with` block does.
    """

    def __init__(self, group: _muster.Group, numbered: Mapping[str, int]) -> None:
        """Use `Session.group()`."""
        self._group = group
        self._numbered = dict(numbered)

    def numbered_datasets(self) -> dict[str, int]:
        """How many records each dataset with `records: N` in the job file has, by its name."""
        return dict(self._numbered)

    def add_bucket(
        self, name: str, elements: int, *, type: SumKind = "fixed_point", fraction_bits: int = 24, after_loop: bool = False
    ) -> SumBucket:
        """Registers a bucket of float32 gradients. Small ones are summed together.

        "fixed_point": each gradient is rounded to a multiple of 2**-fraction_bits, and must be below 2**(50 - fraction_bits).
        The sum has the same bits whoever computes which minibatch. 8 bytes per element. "float32": 4 bytes, and two runs with
        other members differ in the last bits. "bfloat16": 2 bytes between members. `after_loop`: give one sum of all
        minibatches by `put()` in place of `add()`.
        """
        return self._group.add_bucket(name, elements, type, fraction_bits, after_loop)

    def add_state(self, name: str, values: numpy.typing.NDArray[Any]) -> None:
        """Registers a piece of the state: weights, the optimizer's moments, counters; all that `apply` reads and changes.

        `values` is a writable array of numbers in C order; a tensor of PyTorch will do. The library reads and writes its
        memory, inside of `steps()` and `commit()`, and keeps the array until the group ends.
        """
        self._group.add_state(name, values)

    def steps(self) -> Iterator[GroupStep]:
        """The steps, until the job is over or drains, or this worker leaves.

            for step in group.steps():
                for batch in step.batches(parse):
                    ...
                    step.add(bucket, gradient)
                step.commit(apply)

        The first one takes the state as it is then for the initial state: make it the same in every process. A process that
        joins later copies the state in here, and then gets the steps that it has missed since, without minibatches. Waits
        while there is no step. Raises if the session has failed.
        """
        while (step := self._group.next_step()) is not None:
            with contextlib.closing(step):
                yield GroupStep(step)

    def has_final_state(self) -> bool:
        """After `steps()` has ended: the job has succeeded, and the state is the one after its last step.

        Write the result of the job only if it is true; see muster/group.h for when it is not.
        """
        return self._group.has_final_state()

    def close(self) -> None:
        """Leaves the group: the members go on without this process. Idempotent."""
        self._group.close()

    def __enter__(self) -> Group:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()


class DiLoCo:
    """Local steps: in each step of the group, members train alone, and then bring their weights together.

        local = muster.DiLoCo(session.group())
        local.add_weights("weights", weights)
        for step in local.steps():
            for batch in step.batches(parse):
                inner.update(weights, gradient)
            step.commit()

    The group takes the mean of what its members have changed, and an *outer* optimizer applies it. In the loop, the
    registered memory has the weights of this member; in an evaluation and after a commit, those that all share. The state of
    the inner optimizer belongs to each process: register it by `add_mean` if it should not begin again when a process does.
    `fragments`, `mixing` and `members` are those of muster/local_sgd.h.
    """

    def __init__(
        self,
        group: Group,
        *,
        outer: OuterOptimizer = _muster.OuterNesterov(),
        type: SumKind = "float32",
        fraction_bits: int = 24,
        fragments: int = 1,
        mixing: float = 0.0,
        members: int = 0,
    ) -> None:
        self.group = group
        group._group.train_locally(outer, type, fraction_bits, fragments, mixing, members)

    def add_weights(self, name: str, values: numpy.typing.NDArray[numpy.float32]) -> None:
        """Registers a piece of the weights: float32, writable, in C order. Raises like `Group.add_state`."""
        self.group._group.add_weights(name, values)

    def add_mean(self, name: str, values: numpy.typing.NDArray[numpy.float32]) -> None:
        """Registers values of which each step leaves the mean over the members, such as moments of the inner optimizer."""
        self.group._group.add_mean(name, values)

    def steps(self) -> Iterator[GroupStep]:
        """See `Group.steps`. `commit(apply)` has the outer optimizer change the weights, and then calls `apply`, if any."""
        return self.group.steps()


class LocalSGD(DiLoCo):
    """After each step, all members go on from the mean of their weights."""

    def __init__(self, group: Group, *, type: SumKind = "float32", fraction_bits: int = 24) -> None:
        super().__init__(group, outer=_muster.OuterSgd(), type=type, fraction_bits=fraction_bits)
