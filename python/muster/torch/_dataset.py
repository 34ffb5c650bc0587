"""The minibatches of a session as a dataset of PyTorch, for loops over a DataLoader."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import torch.utils.data

import muster

from ..errors import FailedPrecondition

if TYPE_CHECKING:
    from .._group import Parse
    from .._parse_pool import Parse as ParseAlone
    from .._parse_pool import Prepare

_ONE_PROCESS = (
    "ShardDataset: it was sent to a process of a DataLoader, and a session belongs to one process: give num_workers=0, and for a slow "
    "parser ShardDataset(session, parse, parse_processes=4)"
)


class ShardDataset(torch.utils.data.IterableDataset[Any]):
    """Minibatches of a session, one after the other: each item is what `parse` returned for a minibatch.

        dataset = muster.torch.ShardDataset(session, parse)
        for inputs, labels in DataLoader(dataset, batch_size=None):
            loss = loss_of(model(inputs), labels)
            dataset.batch.metric("loss", loss.item(), len(labels))
            loss.backward()
            dataset.done()

    The minibatch of an item is done when the loop says so: by `done()`, or by leaving `with dataset.batch:`, which also reports an
    exception as the reason of the failure. Then all of it takes effect, exactly once. To ask for the next item before that is
    an error: the loader would run ahead of the loop, and an item in its queue would count as trained. A loop that goes on after
    an exception calls `done()` as well.

    So it promises what `session.batches(parse)` promises, if the loop's own process reads it: `num_workers=0`, and
    `batch_size=None`, because the job says how large a minibatch is. In a process of a DataLoader, it raises. It cannot promise
    anything of items that something between it and the loop keeps, repeats or drops. If a loop is left early, the shard of its
    last item is tried again from its beginning, and what was done of it is not done twice.

    One pass has all epochs of the job, and its evaluations: see `batch.epoch` and `batch.evaluate`. A pass that begins later
    ends the one before. It has no length. It belongs to the thread that reads it.
    """

    def __init__(
        self,
        session: muster.Session,
        parse: Parse | Mapping[str, Parse] | ParseAlone | Mapping[str, ParseAlone] | None = None,
        *,
        parse_processes: int = 0,
        prepare: Prepare | None = None,
    ) -> None:
        """The arguments are those of `Session.batches`. Without `parse`, an item is a list of `bytes`, the records."""
        super().__init__()
        self._session = session
        self._parse: Any = parse
        self._options: dict[str, Any] = {"parse_processes": parse_processes, "prepare": prepare}
        self._pass: weakref.ref[Iterator[Any]] | None = None  # weak: the shard goes back when the loop drops the iterator
        self._batch: muster.Batch | None = None

    @property
    def batch(self) -> muster.Batch:
        """The minibatch of the item that the loop has: for metrics, `evaluate`, `push`, and `with`. Raises if it is done."""
        if self._batch is None:
            raise FailedPrecondition("ShardDataset: there is no minibatch: take an item, and use its minibatch before done()")
        return self._batch

    def done(self) -> None:
        """Commits the minibatch of the item: its gradients leave, and all of it takes effect once. Raises like `batch.commit()`."""
        batch, self._batch = self.batch, None
        batch.commit()

    def __iter__(self) -> Iterator[Any]:
        if torch.utils.data.get_worker_info() is not None:
            raise FailedPrecondition(_ONE_PROCESS)
        before = self._pass() if self._pass is not None else None
        if before is not None:
            before.close()  # type: ignore[attr-defined]
        items = self._items()
        self._pass = weakref.ref(items)
        return items

    def __getstate__(self) -> NoReturn:
        raise FailedPrecondition(_ONE_PROCESS)

    def _items(self) -> Iterator[Any]:
        batches = self._session.batches(self._parse, **self._options)
        try:
            for batch in batches:
                self._batch = batch
                batch.on_commit(self._forget)
                yield batch.records if self._parse is None else batch.data
                if self._batch is not None:
                    raise FailedPrecondition(
                        "ShardDataset: another item was asked for before the minibatch of the last one was done: call done() at the end of the "
                        "loop's body, and give DataLoader batch_size=None, so that it does not run ahead"
                    )
        finally:
            self._batch = None
            batches.close()  # type: ignore[attr-defined]

    def _forget(self) -> None:
        """The minibatch is committed."""
        self._batch = None
