"""What files of records look like: how many records they have, and how a part of a file is decoded. pyarrow does the work."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Pin = tuple[int, str]  # size in bytes, digest

_BLOCK, _BLOCKS = 4096, 64
_CSV_BLOCK = 16 * 2**20  # of which a record is never longer


def arrow(name: str = "", needed_by: str = "muster.parquet and muster.csv") -> Any:
    """pyarrow, or a module of it, which is imported when it is first needed. `needed_by`, in the plural, is for the error."""
    try:
        return importlib.import_module(f"pyarrow.{name}" if name else "pyarrow")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{needed_by} need pyarrow, which is not installed: call pip install pyarrow") from error


@contextlib.contextmanager
def _named(path: str) -> Iterator[None]:
    """What pyarrow says of a file is a ValueError that names it."""
    try:
        yield
    except (arrow().ArrowException, OSError) as error:
        raise ValueError(f"{path}: {error}") from error


@dataclass
class OpenFile:
    """A file as it was when it was opened."""

    path: str
    pin: Pin
    parts: list[int]  # records of each part that is decoded as a whole
    types: dict[str, str]  # of the columns that are read
    seen: tuple[int, int, int]  # `look` from before the pin was taken

    @property
    def size(self) -> int:
        return self.pin[0]

    @property
    def digest(self) -> str:
        return self.pin[1]

    def touched(self) -> bool:
        """False: nobody has written to it, so its pin is what it was. True: it must be looked at."""
        return look(self.path) != self.seen


def look(path: str) -> tuple[int, int, int]:
    """What changes when somebody writes to the file, or puts another one in its place."""
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns, status.st_ino


class Format(Protocol):
    """A kind of file. Objects can be pickled."""

    def open(self, path: str) -> OpenFile: ...

    def all_open(self) -> None:
        """Called when all files are open."""

    def pin(self, path: str) -> Pin:
        """What the file is recognised by."""

    def read(self, file: OpenFile, part: int) -> Any:
        """A part as a `pyarrow.Table`, its columns in the order that was asked for."""


class Parquet:
    """A part is a row group. The pin has the footer, which says where everything is."""

    def __init__(self, columns: Sequence[str] | None) -> None:
        if isinstance(columns, str):
            raise TypeError(f"columns: the text {columns!r} came, a list of names is needed")
        self._columns = None if columns is None else list(columns)
        if self._columns == []:
            raise ValueError("columns: an empty list came, at least one name is needed, or None for all columns")
        for name in self._columns or ():
            if self._columns is not None and self._columns.count(name) > 1:
                raise ValueError(f"columns: {name!r} came twice")
        self._metadata: dict[str, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"_columns": self._columns, "_metadata": {}}

    def open(self, path: str) -> OpenFile:
        seen, pin = look(path), self.pin(path)
        with _named(path), arrow("parquet").ParquetFile(path) as file:
            metadata, schema = file.metadata, file.schema_arrow
        if self._columns is None:  # the first file says what all must have
            self._columns = list(schema.names)
        for name in self._columns:
            if name not in schema.names:
                raise ValueError(f"columns: {path} has no column {name!r}, only {', '.join(schema.names)}")
        self._metadata[path] = metadata
        parts = [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)]
        return OpenFile(path, pin, parts, {name: str(schema.field(name).type) for name in self._columns}, seen)

    def all_open(self) -> None:
        """There is nothing to do."""

    def pin(self, path: str) -> Pin:
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            file.seek(max(0, size - 8))
            end = file.read(8)
            length = int.from_bytes(end[:4], "little")
            if len(end) < 8 or end[4:] != b"PAR1" or length + 8 > size:
                raise ValueError(f"{path}: it is no Parquet file: it does not end with a footer and PAR1")
            file.seek(size - 8 - length)
            return size, hashlib.blake2b(file.read(length), digest_size=16).hexdigest()

    def read(self, file: OpenFile, part: int) -> Any:
        with _named(file.path), arrow("parquet").ParquetFile(file.path, metadata=self._metadata.get(file.path)) as opened:
            return opened.read_row_group(part, columns=self._columns).select(self._columns).combine_chunks()


class Csv:
    """A part is a whole file. The pin has some of its blocks, as Muster's own pins have."""

    def __init__(self, columns: Mapping[str, Any], names: Sequence[str] | None, delimiter: str, index: str | None) -> None:
        if not isinstance(columns, Mapping) or not columns:
            raise TypeError(f'columns: {columns!r} came, a mapping from names to types is needed, such as {{"price": "float32"}}')
        if len(delimiter) != 1 or ord(delimiter) > 127:
            raise ValueError(f"delimiter: {delimiter!r} came, one ASCII character is needed")
        if isinstance(names, str):
            raise TypeError(f"names: the text {names!r} came, a list of names is needed")
        self._columns = {name: _type_of(name, kind) for name, kind in columns.items()}
        self._names = None if names is None else list(names)
        for name in self._columns:
            if self._names is not None and name not in self._names:
                raise ValueError(f"columns: {name!r} is none of the names that came, {', '.join(self._names)}")
        self._delimiter, self._index = delimiter, index
        self._counts = _read_index(index)
        self._counted = False

    def _options(self) -> dict[str, Any]:
        csv = arrow("csv")
        return {
            "read_options": csv.ReadOptions(column_names=self._names, block_size=_CSV_BLOCK),
            "parse_options": csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
            "convert_options": csv.ConvertOptions(include_columns=list(self._columns), column_types=self._columns),
        }

    def open(self, path: str) -> OpenFile:
        seen, pin = look(path), self.pin(path)
        # How many records the bytes are depends on these two as well.
        key = f"{pin[0]} {pin[1]} {self._delimiter} {'header' if self._names is None else 'names'}"
        if key not in self._counts:
            self._counts[key] = self._count(path)
            self._counted = True
        return OpenFile(path, pin, [self._counts[key]], {name: str(kind) for name, kind in self._columns.items()}, seen)

    def _count(self, path: str) -> int:
        """Reads all of the file, in bounded memory."""
        with _named(path), arrow("csv").open_csv(path, **self._options()) as reader:
            return sum(batch.num_rows for batch in reader)

    def all_open(self) -> None:
        if self._index is not None and self._counted:
            _write_index(self._index, self._counts)
        self._counted = False

    def pin(self, path: str) -> Pin:
        size = os.path.getsize(path)
        digest = hashlib.blake2b(digest_size=16)
        with open(path, "rb") as file:
            if size <= _BLOCK * _BLOCKS:
                digest.update(file.read())
            else:
                for block in range(_BLOCKS):
                    file.seek(block * (size - _BLOCK) // (_BLOCKS - 1))
                    digest.update(file.read(_BLOCK))
        return size, digest.hexdigest()

    def read(self, file: OpenFile, part: int) -> Any:
        with _named(file.path):
            return arrow("csv").read_csv(file.path, **self._options()).combine_chunks()


def _type_of(name: str, kind: Any) -> Any:
    if isinstance(kind, arrow().DataType):
        return kind
    try:
        return arrow().type_for_alias(kind)
    except (TypeError, ValueError) as error:
        raise ValueError(f'columns: {name!r} came with {kind!r}, a type of pyarrow or its name is needed, such as "float32" or "string"') from error


def _read_index(path: str | None) -> dict[str, int]:
    """Numbers of records by what a file is recognised by. Empty if there is no such file yet."""
    if path is None or not os.path.exists(path):
        return {}
    try:
        with open(path, encoding="utf-8") as file:
            return {str(key): int(count) for key, count in json.load(file)["records"].items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"index: {path} is not an index that muster.csv has written: remove it, or give another name") from error


def _write_index(path: str, counts: dict[str, int]) -> None:
    """Several processes may do this at once: all have counted the same, and each writes a whole file."""
    temporary = f"{path}.{os.getpid()}.part"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump({"records": {**_read_index(path), **counts}}, file, indent=1, sort_keys=True)
        file.write("\n")
    os.replace(temporary, path)
