"""Outputs of a predict dataset as Parquet: what a minibatch gives out, and the file that a shard becomes. pyarrow does the work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ._source_formats import arrow

_WHAT = "columns in batch.output"


class Columns(Protocol):
    """What has columns of Arrow: tables and record batches of pyarrow, and the frames of Polars, pandas and others."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


def to_piece(value: Mapping[str, Any] | Columns) -> bytes:
    """The columns in Arrow's format of streams. Raises ValueError if they are no columns of one length."""
    pa = arrow(needed_by=_WHAT)
    if isinstance(value, Mapping):
        value = {name: _column(column) for name, column in value.items()}
    try:
        table = pa.table(value)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ValueError(f"value: columns of one length are needed, each a list or an array of one dimension: {error}") from error
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    piece: bytes = sink.getvalue().to_pybytes()
    return piece


def _column(column: Any) -> Any:
    """A tensor of another library as an array."""
    if not hasattr(column, "__array__") or hasattr(column, "__arrow_c_array__") or hasattr(column, "__arrow_c_stream__"):
        return column
    import numpy as np

    return np.asarray(column)


def to_parquet(pieces: Sequence[memoryview]) -> bytes:
    """A Parquet file with a row group for each piece that has rows. Raises ValueError if they have different columns.

    The same pieces give the same bytes, with the same version of pyarrow. Keeps no piece.
    """
    pa, parquet = arrow(needed_by=_WHAT), arrow("parquet", needed_by=_WHAT)
    tables = [pa.ipc.open_stream(pa.py_buffer(piece)).read_all() for piece in pieces]
    schema = tables[0].schema
    for table in tables:
        if not table.schema.equals(schema):
            raise ValueError(
                f"a minibatch has the columns ({_shown(table.schema)}), and the first one of the shard has ({_shown(schema)}): "
                "give each column the same type in all minibatches"
            )
    sink = pa.BufferOutputStream()
    with parquet.ParquetWriter(sink, schema) as writer:
        for table in tables:
            if table.num_rows > 0:
                writer.write_table(table, row_group_size=table.num_rows)
    file: bytes = sink.getvalue().to_pybytes()
    return file


def _shown(schema: Any) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)
