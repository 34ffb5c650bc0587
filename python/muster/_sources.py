"""Records of files that Muster does not read itself, for datasets of kind `records: N`: Parquet, and CSV that cannot be split."""

from __future__ import annotations

import collections
import glob
import hashlib
import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from . import _muster
from ._group import Group
from ._session import Session
from ._source_formats import Csv, Format, OpenFile, Parquet, arrow
from .errors import AlreadyExists, FailedPrecondition

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Path = Union[str, "os.PathLike[str]"]
CACHE_BYTES = 256 * 2**20


class Source:
    """The records of a list of files, by their numbers, for a dataset with `records: N`. `parquet()` and `csv()` open it.

        orders = muster.parquet("orders-*.parquet", columns=["price", "shop", "returned"])

        def parse(batch):
            table = orders.read(batch.record_numbers)    # a pyarrow.Table, a row for each record
            return table["price"].to_numpy(), table["returned"].to_numpy()

    Record 0 is the first one of the first file. `N` must be `len(source)`: give it as `data_records=len(orders)` to
    `muster.launch`, or print it for the job file. Every worker opens all files, which must be the same everywhere; see `check`.

    Files are read in parts: row groups of Parquet, whole files of CSV. A part is decoded as a whole, and the parts that were
    read last stay in memory, up to `cache_bytes`. So the job's `shuffle` decides how often a part is decoded:

    * If all that is read fits into `cache_bytes`, any `shuffle` suits: each worker decodes each part once.
    * `shuffle: shards` suits larger data: shards of neighbouring records come in a random order. A shard has `minibatchSize` *
      `minibatchesPerShard` records; with about as many records in a part, each part is decoded once or twice per epoch.
    * `shuffle: true` does not suit larger data: a minibatch then has records of many parts, up to one for each of its records,
      and all of these are decoded for it. `reads` shows that.

    A file must not change while the job goes on. Its size and a digest are kept when it is opened; if it was changed later,
    `read` raises. Thread-safe; threads read one after the other. It can be sent to another process, as `parse_processes` does
    with what `parse` refers to, and has a cache of its own there.
    """

    def __init__(self, format: Format, paths: Path | Sequence[Path], cache_bytes: int) -> None:
        """Use `parquet()` or `csv()`."""
        if isinstance(cache_bytes, bool) or not isinstance(cache_bytes, int) or cache_bytes < 0:
            raise ValueError(f"cache_bytes: {cache_bytes!r} came, a number of bytes of at least 0 is needed")
        self._format, self._cache_bytes = format, cache_bytes
        self._files = [format.open(path) for path in _find(paths)]
        format.all_open()
        for file in self._files:
            _require_same_types(self._files[0], file)
        self._parts = [(file, part) for file in self._files for part in range(len(file.parts))]
        self._first = [0]  # record of each part, and at the end the number of all
        for file, part in self._parts:
            self._first.append(self._first[-1] + file.parts[part])
        if len(self) == 0:
            raise ValueError(f"paths: there are no records in {', '.join(file.path for file in self._files)}")
        self._begin()

    def _begin(self) -> None:
        """What belongs to one process."""
        self._lock = threading.Lock()
        self._cache: collections.OrderedDict[int, Any] = collections.OrderedDict()
        self._cached_bytes = self._reads = 0

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_lock", "_cache", "_cached_bytes", "_reads")}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self._begin()

    def __len__(self) -> int:
        """The number of records: the `N` of the dataset."""
        return self._first[-1]

    def __repr__(self) -> str:
        return f"<muster.Source of {len(self)} records in {len(self._files)} files, digest {self.digest}>"

    @property
    def files(self) -> list[str]:
        """The files, in the order of their records."""
        return [file.path for file in self._files]

    @property
    def digest(self) -> str:
        """32 letters that stand for the content and the order of the files. Their names and the columns do not matter."""
        return hashlib.blake2b("".join(f"{file.size} {file.digest} {file.parts}\n" for file in self._files).encode(), digest_size=16).hexdigest()

    @property
    def reads(self) -> int:
        """How many parts (row groups, or whole files) this process has decoded so far."""
        return self._reads

    def check(self, job: Session | Group, name: str = "source") -> None:
        """Makes sure that all workers of the job have opened the same files, in the same order, and that the job reads all records
        of them. Call it before the loop.

        Raises `FailedPrecondition` if no dataset of the job has `records: N` with N = `len(source)`: with a smaller N, some records
        would never be read.

        With a session, it registers a tensor of one number that is called `name`, whose definition has the digest; it raises
        `AlreadyExists` if another worker came first with other files, or if they have changed since the job began. The worker
        must then end. The tensor is among those that `muster export` writes. With a group, it registers one more piece of state,
        and a worker with other files is refused when its steps begin. Two sources need two names.
        """
        numbered = job.numbered_datasets()
        if len(self) not in numbered.values():
            has = ", ".join(f'"{dataset}" has {records}' for dataset, records in numbered.items())
            raise FailedPrecondition(
                f"{name}: the source has {len(self)} records, and no dataset of the job has as many ({has or 'none has numbers as records'}): "
                f"give `records: {len(self)}` in the job file, or data_records={len(self)} in muster.launch"
            )
        if isinstance(job, Group):
            import numpy as np

            job.add_state(f"{name} {self.digest}", np.zeros(1, np.float32))
            return
        # The optimizer Sum has no learning rate, so the warm-up does nothing but tell one source from another.
        warmup = _muster.ConstantRate(warmup_steps=int(self.digest[:15], 16))
        try:
            job.dense(name, 1, optimizer=_muster.Sum(), schedule=warmup)
        except AlreadyExists as error:
            raise AlreadyExists(
                f"{name}: this worker has opened other files than the worker that came first, or in another order, or they have changed "
                f"since the job began. Here are {len(self)} records in {len(self._files)} files, from {self.files[0]} to {self.files[-1]}"
            ) from error

    def read(self, numbers: npt.NDArray[np.int64]) -> Any:
        """The records of these numbers, in this order: a `pyarrow.Table` of the columns, each in one piece.

        `numbers` is `batch.record_numbers`, or another array of whole numbers of one dimension. Numbers may repeat. Raises
        IndexError if a number is not below `len(source)`, and `FailedPrecondition` if a file was changed since it was opened.
        """
        import numpy as np

        numbers = _checked(numbers, len(self))
        part_of = np.searchsorted(np.array(self._first), numbers, side="right") - 1
        tables: list[Any] = []
        positions: list[npt.NDArray[np.intp]] = []
        with self._lock:
            # Those in the cache first: others may displace them.
            for part in sorted({int(part) for part in part_of}, key=lambda part: (part not in self._cache, part)):
                positions.append(np.flatnonzero(part_of == part))
                tables.append(self._part(part).take(arrow().array(numbers[positions[-1]] - self._first[part])))
        table = tables[0]
        if len(tables) > 1:
            order = np.empty(len(numbers), np.int64)
            order[np.concatenate(positions)] = np.arange(len(numbers))
            table = arrow().concat_tables(tables).take(arrow().array(order))
        return table.combine_chunks()

    def _part(self, index: int) -> Any:
        """The table of a part: from the cache, or decoded."""
        if index in self._cache:
            self._cache.move_to_end(index)
            return self._cache[index]
        file, part = self._parts[index]
        try:
            table = self._format.read(file, part)
        finally:  # a file that has changed is a better reason than what was found in it
            self._require_unchanged(file)
        if table.num_rows != file.parts[part]:
            raise FailedPrecondition(f"{file.path} has changed since it was opened: {table.num_rows} records are where {file.parts[part]} were")
        self._reads += 1
        self._cache[index] = table
        self._cached_bytes += table.nbytes
        while self._cached_bytes > self._cache_bytes and len(self._cache) > 1:
            self._cached_bytes -= self._cache.popitem(last=False)[1].nbytes
        return table

    def _require_unchanged(self, file: OpenFile) -> None:
        if not file.touched():
            return
        size = os.path.getsize(file.path)
        try:
            same = self._format.pin(file.path) == file.pin
        except ValueError:  # it is not even of its kind any more
            same = False
        if same:
            return
        what = f"its size was {file.size} bytes, and is {size}" if size != file.size else "its size is the same, and its content is another one"
        raise FailedPrecondition(f"{file.path} has changed since it was opened: {what}. A job needs the files that it began with")


def parquet(paths: Path | Sequence[Path], columns: Sequence[str] | None = None, *, cache_bytes: int = CACHE_BYTES) -> Source:
    """Opens Parquet files as the records of a dataset with `records: N`; see `Source`.

    `paths` are files on disk, or glob patterns, whose matches are sorted by name; the numbers of records follow their order.
    `columns` are the names of the columns that are read, and their order; None: all. They must have the same types in each file.
    `cache_bytes` bounds the decoded row groups in memory; besides, one may be there that is being read, whatever its size.

    Needs pyarrow, which `import muster` does not import. Raises `FileNotFoundError` if there is no such file, and ValueError if
    a file is no Parquet file, or if a column is missing or of another type than in the first file.
    """
    return Source(Parquet(columns), paths, cache_bytes)


def csv(
    paths: Path | Sequence[Path],
    columns: Mapping[str, Any],
    *,
    names: Sequence[str] | None = None,
    delimiter: str = ",",
    index: Path | None = None,
    cache_bytes: int = CACHE_BYTES,
) -> Source:
    """Opens CSV files that Muster cannot cut into lines, because they are compressed or have line ends in quotes; see `Source`.

    Give plain files to the job itself, by `files`: they need none of this. A file is decoded as a whole, so many files of some
    ten MB each are better than one of many GB. "x.csv.gz", ".bz2", ".zst" and ".lz4" are decompressed.

    `columns` are the columns that are read, each with its type: `{"price": "float32", "text": "string"}`, or types of pyarrow.
    `names` are the names of all columns of files without a header.

    To know how many records there are, all files are read once when they are opened. With `index`, the numbers are kept in this
    file, and files that it knows are not read again: open the files once before the job, and all workers find it.

    Needs pyarrow. Raises `FileNotFoundError` if there is no such file, and ValueError, with the name of the file, if it cannot
    be read, or if it has a value that is not of its column's type.
    """
    return Source(Csv(columns, names, delimiter, None if index is None else os.fspath(index)), paths, cache_bytes)


def _find(paths: Path | Sequence[Path]) -> list[str]:
    patterns = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not patterns:
        raise ValueError("paths: an empty list came, at least one file or glob pattern is needed")
    files: list[str] = []
    for pattern in [os.fspath(pattern) for pattern in patterns]:
        found = [pattern] if os.path.exists(pattern) else sorted(glob.glob(pattern))
        if not found:
            raise FileNotFoundError(f"paths: {pattern!r} matches no file in {os.getcwd()}")
        files += [os.path.abspath(file) for file in found]
    for file, count in collections.Counter(files).items():
        if count > 1:
            raise ValueError(f"paths: {file} came {count} times, and each of its records would count as often")
    return files


def _require_same_types(first: OpenFile, file: OpenFile) -> None:
    for column, kind in first.types.items():
        if file.types[column] != kind:
            raise ValueError(
                f"{file.path}: the column {column!r} is of {file.types[column]}, and of {kind} in {first.path}: the types must be the same"
            )


def _checked(numbers: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    import numpy as np

    array = np.asarray(numbers)
    if array.size == 0:
        raise ValueError("numbers: none came, at least one is needed: a batch has record_numbers if its dataset has `records: N`, and no files")
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise TypeError(f"numbers: an array of {array.dtype} of shape {array.shape} came, whole numbers of one dimension are needed")
    array = array.astype(np.int64, copy=False)
    wrong = array[(array < 0) | (array >= count)]
    if wrong.size > 0:
        raise IndexError(
            f"record {wrong[0]}: the source has {count}, 0 to {count - 1}: its dataset needs `records: {count}` in the job file, or "
            f"data_records={count} in muster.launch"
        )
    return array
