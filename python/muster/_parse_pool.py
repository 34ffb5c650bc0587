"""Processes in which `parse` runs, for parsers that hold the GIL. The loop, its order and its minibatches stay as they are."""

from __future__ import annotations

import collections
import concurrent.futures
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Mapping
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, NoReturn

from . import _muster
from ._group import function_for
from .errors import Error, FailedPrecondition, describe

TRIES = 3


@dataclass
class ParseBatch:
    """A minibatch as `parse` sees it in a process of a pool: records, and what is known of them. See `Batch`."""

    records: list[bytes]
    nominal_size: int
    evaluate: bool
    predict: bool
    dataset: str
    epoch: int
    seed: int
    step: int
    shard: str
    header: bytes
    record_numbers: Any  # int64, as in `Batch`
    rejected: list[tuple[int, str]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.records)

    def reject(self, record: int, reason: str) -> None:
        """Reports that records[record] cannot be used. Leave it out of the gradients yourself."""
        if not 0 <= record < len(self.records):
            raise IndexError(f"record {record}: the minibatch has {len(self.records)}")
        self.rejected.append((record, reason))

    def need(self, *_arguments: object) -> NoReturn:
        """There are no tables here."""
        raise FailedPrecondition("a process of `parse` has no tables: return the keys, and call need() in `prepare`, which runs in the loop's process")


Parse = Callable[[ParseBatch], object]
Prepare = Callable[[_muster.Batch, object], object]


@dataclass
class _Parsed:
    data: object = None
    rejected: list[tuple[int, str]] = field(default_factory=list)
    error: BaseException | None = None
    reason: str = ""  # with the place in `parse`, which the exception loses on its way


@dataclass
class _Waiting:
    batch: _muster.Batch
    parse: Parse
    records: ParseBatch
    future: concurrent.futures.Future[_Parsed]
    tries: int = 1


class ParsePool:
    """Parses ahead in processes. Belongs to one loop's thread."""

    def __init__(self, parse: Parse | Mapping[str, Parse], processes: int, prepare: Prepare | None) -> None:
        if processes < 1:
            raise ValueError(f"parse_processes: {processes} came, at least 1 is needed, or 0 for no processes")
        for function in parse.values() if isinstance(parse, Mapping) else (parse,):
            _require_pickle(function)
        self._parse, self._prepare, self._processes = parse, prepare, processes
        self._pool = self._new_pool()
        self._waiting: collections.deque[_Waiting] = collections.deque()

    def __enter__(self) -> ParsePool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def submit(self, batch: _muster.Batch) -> None:
        """The `parse` of the loop: sends the records to a process."""
        parse = self._parse
        if isinstance(parse, Mapping):
            parse = function_for(parse, batch.dataset)
        names = ("records", "nominal_size", "evaluate", "predict", "dataset", "epoch", "seed", "step", "shard", "header", "record_numbers")
        records = ParseBatch(**{name: getattr(batch, name) for name in names})
        waiting = _Waiting(batch, parse, records, self._send(parse, records))
        self._waiting.append(waiting)
        batch.on_begin(lambda: self._finish_until(waiting))

    def finish_ready(self) -> None:
        """Prepares what has been parsed, in its order. Does not wait."""
        while self._waiting and self._waiting[0].future.done():
            self._finish(self._waiting[0])

    def leave_shard(self) -> None:
        """The loop has left all its minibatches."""
        for waiting in self._waiting:
            waiting.future.cancel()
        self._waiting.clear()

    def _finish_until(self, last: _Waiting) -> None:
        while last in self._waiting:
            self._finish(self._waiting[0])

    def _finish(self, waiting: _Waiting) -> None:
        parsed = self._wait(waiting)
        self._waiting.remove(waiting)
        batch = waiting.batch
        if parsed.error is not None:
            batch.fail(parsed.reason)
            raise parsed.error
        for record, reason in parsed.rejected:
            batch.reject(record, reason)
        if self._prepare is None:
            batch.data = parsed.data
            return
        try:
            batch.data = self._prepare(batch, parsed.data)
        except Exception as error:
            batch.fail(describe(error))
            raise

    def _wait(self, waiting: _Waiting) -> _Parsed:
        while True:
            try:
                return waiting.future.result()
            except BrokenProcessPool as error:
                if waiting.tries == TRIES:
                    raise Error(f"a process that called `parse` for minibatch {waiting.records.step} has died {TRIES} times: {error}") from error
                self._pool.shutdown(wait=False)
                self._pool = self._new_pool()
                waiting.tries += 1
                for other in self._waiting:
                    if not other.future.done() or other.future.cancelled() or other.future.exception() is not None:
                        other.future = self._send(other.parse, other.records)

    def _send(self, parse: Parse, records: ParseBatch) -> concurrent.futures.Future[_Parsed]:
        try:
            return self._pool.submit(_call, parse, records)
        except BrokenProcessPool as error:  # _wait will send it again
            broken: concurrent.futures.Future[_Parsed] = concurrent.futures.Future()
            broken.set_exception(error)
            return broken

    def _new_pool(self) -> concurrent.futures.ProcessPoolExecutor:
        # Not "fork": a child that is forked from a process with a session cannot be used.
        context = multiprocessing.get_context("forkserver")
        return concurrent.futures.ProcessPoolExecutor(self._processes, mp_context=context, initializer=_begin_process)


def _require_pickle(parse: object) -> None:
    try:
        pickle.dumps(parse)
    except Exception as error:
        raise TypeError(
            f"parse: {parse!r} cannot be sent to a process ({error}): give a function of a module, not a lambda, a function in a function, or a "
            "method of an object that has a session"
        ) from error


def _begin_process() -> None:
    """In a process of the pool: Ctrl-C is for the parent, and without the parent, the process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _call(parse: Parse, records: ParseBatch) -> _Parsed:
    """In a process of the pool."""
    try:
        return _Parsed(parse(records), records.rejected)
    except Exception as error:
        reason = describe(error)
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            return _Parsed(error=Error(reason), reason=reason)
        return _Parsed(error=error, reason=reason)
