"""The session: what connects, registers tables and runs the loop."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Union, overload

from . import _muster
from ._group import Group, Parse, by_dataset
from .errors import Error, FailedPrecondition

if TYPE_CHECKING:  # it imports much, and few need it
    from ._parse_pool import Parse as ParseAlone
    from ._parse_pool import ParsePool, Prepare

Optimizer = Union[
    _muster.Sum, _muster.Sgd, _muster.Momentum, _muster.Adagrad, _muster.RowwiseAdagrad, _muster.Adam, _muster.AdamW, _muster.Ftrl
]
Initializer = Union[_muster.Zero, _muster.Constant, _muster.Uniform, _muster.Normal]
Schedule = Union[_muster.ConstantRate, _muster.StepDecay, _muster.CosineDecay]


class Session:
    """A worker's connection to its job; `connect()` makes it. A process may have one.

    Thread-safe: several threads may each run a loop of their own. `with` finishes it: when the block ends, it waits until
    the master has answered all reports, and raises if the session has failed or the block was left before the job was over.

    A child that is forked from this process cannot use the session, and every call there raises: start processes with
    multiprocessing's start method "spawn" or "forkserver", or use threads.
    """

    def __init__(self, session: _muster.Session) -> None:
        """Use `connect()`."""
        self._session = session
        # Shards go back to the master also if nobody closes the session.
        self._finalizer = weakref.finalize(self, session.close)

    def table(
        self,
        name: str,
        dim: int,
        *,
        optimizer: Optimizer = _muster.Sgd(),
        initializer: Initializer = _muster.Zero(),
        schedule: Schedule = _muster.ConstantRate(),
        warm_start: str = "",
    ) -> _muster.Table:
        """Registers a table of float32 rows of `dim` columns with 64-bit keys, of which every value is allowed.

        A row exists from its first push on; before that, a pull sees its initial values. Every worker must give the same
        definition. `warm_start` is a folder that `muster export` wrote. Raises if the table cannot be had; the session has
        then failed.
        """
        return self._session.table(name, dim, optimizer, initializer, schedule, warm_start)

    def dense(
        self,
        name: str,
        shape: int | Sequence[int],
        *,
        optimizer: Optimizer = _muster.Sgd(),
        initializer: Initializer = _muster.Zero(),
        schedule: Schedule = _muster.ConstantRate(),
        warm_start: str = "",
    ) -> _muster.DenseTensor:
        """Registers one float32 tensor of known shape, row-major. All its elements exist from the beginning."""
        return self._session.dense(name, shape, optimizer, initializer, schedule, warm_start)

    @overload
    def batches(self, parse: Parse | Mapping[str, Parse] | None = None) -> Iterator[_muster.Batch]: ...

    @overload
    def batches(
        self, parse: ParseAlone | Mapping[str, ParseAlone], *, parse_processes: int, prepare: Prepare | None = None
    ) -> Iterator[_muster.Batch]: ...

    def batches(self, parse: Any = None, *, parse_processes: int = 0, prepare: Prepare | None = None) -> Iterator[_muster.Batch]:
        """The minibatches of this worker, until the job is over or drains, or this worker leaves.

        `parse(batch)` is called for each, some minibatches ahead of the loop, on its thread. It usually parses
        `batch.records` and calls `batch.need()`. What it returns is `batch.data` in the loop. A mapping has a function for
        each dataset, by name. If it raises, the shard fails with the exception, which then ends the loop.

            for batch in session.batches(parse):
                with batch:
                    ...

        The step to the next minibatch commits the one before. Raises if the session has failed.

        With `parse_processes=N`, `parse` runs in N processes, for parsers that take much time of Python. It is then a function of a
        module, gets the records without tables, and returns something that can be pickled. `prepare(batch, data)` is called
        with that on the loop's thread: it calls `need()`, and what it returns is `batch.data`. The order stays as it is.
        `training.prefetchMinibatches` of the job should be at least N. Raises TypeError if `parse` cannot be pickled.
        """
        if parse_processes:
            if parse is None:
                raise ValueError(f"parse: None came with parse_processes={parse_processes}: give a function")
            from ._parse_pool import ParsePool

            return self._parsed_elsewhere(ParsePool(parse, parse_processes, prepare))
        if prepare is not None:
            raise ValueError("prepare: it came without parse_processes: let `parse` do what it does")
        return self._parsed_here(by_dataset(parse))

    def _parsed_here(self, parse: Parse | None) -> Iterator[_muster.Batch]:
        while (loop := self._session.next_loop(parse)) is not None:
            with contextlib.closing(loop):
                while (batch := loop.next()) is not None:
                    yield batch

    def _parsed_elsewhere(self, pool: ParsePool) -> Iterator[_muster.Batch]:
        with pool:
            while (loop := self._session.next_loop(pool.submit)) is not None:
                with contextlib.closing(loop):
                    while (batch := loop.next()) is not None:
                        yield batch
                        pool.finish_ready()
                pool.leave_shard()

    def group(
        self, *, backend: Literal["ring", "nccl", "plugin"] = "ring", device: int = 0, library: str = "", driver: str = ""
    ) -> Group:
        """This process's part in the group of a job with `spec.group`, where `batches()` is not for use.

        `backend` is what adds gradients among the members, the same in all of them: the members' own "ring"; "nccl" with a
        GPU each, of the number `device`; or a "plugin", the file `library`. `library` and `driver` of NCCL are found by the
        dynamic linker if empty. Raises `FailedPrecondition` if the job has no group, or if this process has one already.
        """
        return Group(self._session.group(backend, device, library, driver), self.numbered_datasets())

    def numbered_datasets(self) -> dict[str, int]:
        """How many records each dataset with `records: N` in the job file has, by its name."""
        return self._session.numbered_datasets()

    def leave(self) -> None:
        """Ends this worker's part in the job, for example after SIGTERM: loops end after their shard, finish() returns 0.

        A handler of `signal.signal` may call it.
        """
        self._session.leave()

    def check(self) -> None:
        """Raises if the session has failed, and says why."""
        self._session.check()

    def finish(self) -> int:
        """Waits until the master has answered all reports, and returns the exit code of the process.

        It is 0 if the job is over for this worker, or drains; otherwise 1, with a line on stderr.
        """
        return self._session.finish()

    def close(self) -> None:
        """Ends the session without finish(): shards in loops go back. Waits for the master, at most 5 s. Idempotent."""
        if not self._session.close():
            raise FailedPrecondition("another thread is in a call of the session: call leave(), and join the thread before")
        self._finalizer.detach()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if kind is not None:
            self.close()
            return
        code = self.finish()
        try:
            self.check()
        finally:
            self.close()
        if code != 0:
            raise Error("the loop was left before the job was over: call leave() if this worker is to end before")


def connect(
    *,
    master_address: str | None = None,
    worker_name: str | None = None,
    job_id: str | None = None,
    connect_timeout: float | None = None,
) -> Session:
    """Connects this worker to its job. What is not given comes from the environment, which `muster run` sets.

    `connect_timeout` is in seconds, 30 by default. Raises `Unavailable` if no master has answered by then, and
    `InvalidArgument` if it is not known where the master is.
    """
    return Session(_muster.Session.connect(master_address, worker_name, job_id, connect_timeout))
