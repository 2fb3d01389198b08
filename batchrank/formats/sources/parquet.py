"""Reads Parquet files, one row a candidate or one row a query with a column of candidates."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import orjson

from batchrank.errors import DiskError, UsageError
from batchrank.formats.candidates import TEXT_KEYS
from batchrank.formats.lines import RawLine
from batchrank.formats.opening import Opened
from batchrank.formats.requests import LISTS
from batchrank.formats.sources.tables import (
    AnyColumns,
    NumberedRow,
    columns_of,
    encoded,
    gathered,
    refuse_results,
)
from batchrank.formats.sources.typed import plain_row

if TYPE_CHECKING:
    import pyarrow as pa

_MAGIC = b"PAR1"
_ROWS = 1024
_NESTED_ROWS = 16
_JSON = ("metadata", "extra", "windows", "error")
_RANKING = "ranking"
_TEXTS = frozenset((*TEXT_KEYS, "title", "doc"))
_READ = frozenset(
    (
        *("query", "qid", "weight", "docid", "score", "path", "start_line", *LISTS, _RANKING),
        *_TEXTS,
    )
)
"""What is read of a row that holds a query with its candidates; anything may stand elsewhere."""
_INDEX = "__index_level_"
"""How pandas names what was the index of a frame."""


def is_parquet(head: bytes) -> bool:
    """Whether a file that begins so is Parquet."""
    return head.startswith(_MAGIC)


def parquet_lines(file: Opened, path: str, *, results: bool) -> Iterator[RawLine]:
    """The queries of a Parquet file, numbered by the row each begins in.

    A file that is packed or comes by a pipe is copied first, since its end is read before the rest.
    In memory is one row group. Raises UsageError where the columns can't be used, the file is
    damaged, or pyarrow is not installed; DiskError where there is no room for the copy.
    """
    pa, pq = import_pyarrow()
    with _seekable(file, path) as seekable:
        try:
            table = pq.ParquetFile(seekable)
            names = [name for name in table.schema_arrow.names if not name.startswith(_INDEX)]
            if _RANKING in names and not results:
                raise refuse_results(file.name)
            if any(name in names for name in (*LISTS, _RANKING)):
                batches = table.iter_batches(_NESTED_ROWS, columns=names)
                yield from _nested(batches)
                return
            columns = columns_of(names, file.name, results=results)
            batches = table.iter_batches(_ROWS, columns=names)
            yield from gathered(_rows(batches, columns), columns)
        except (pa.ArrowException, OSError) as error:
            raise UsageError(f"{file.name} is no Parquet file that can be read: {error}") from error


def import_pyarrow() -> tuple[Any, Any]:
    """The modules pyarrow and pyarrow.parquet; UsageError where they are not installed."""
    try:
        import pyarrow  # noqa: PLC0415 - an extra, and slow to load
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError as error:
        raise UsageError("Parquet needs pyarrow: pip install 'batchrank[parquet]'") from error
    return pyarrow, parquet


@contextmanager
def _seekable(file: Opened, path: str) -> Iterator[IO[bytes]]:
    if path != "-" and Path(path).is_file():
        with Path(path).open("rb") as plain:
            if plain.read(len(_MAGIC)) == _MAGIC:
                plain.seek(0)
                yield plain
                return
    with tempfile.TemporaryFile() as copy:
        try:
            for chunk in file.chunks:
                copy.write(chunk)
            copy.seek(0)
        except OSError as error:
            raise DiskError(f"{file.name} can't be unpacked: {error.strerror or error}") from error
        yield copy


def _nested(batches: Iterator[pa.RecordBatch]) -> Iterator[RawLine]:
    number = 0
    for batch in batches:
        for row in batch.to_pylist():
            number += 1
            plain = plain_row(row, number, _READ)
            line = _parsed(plain)
            for key in (*LISTS, _RANKING):
                if key in plain:
                    items = plain[key] or ()
                    line[key] = [_parsed(one) if isinstance(one, dict) else one for one in items]
            extra = line.pop("extra", None)
            yield RawLine(number, encoded({**extra, **line} if isinstance(extra, dict) else line))


def _rows(batches: Iterator[pa.RecordBatch], columns: AnyColumns) -> Iterator[NumberedRow]:
    json_columns = [name for name in columns.names if columns.kind(name) in _JSON]
    read = [name for name in columns.names if columns.kind(name) not in (None, *_JSON)]
    number = 0
    for batch in batches:
        for row in batch.to_pylist():
            number += 1
            plain = plain_row(row, number, read)
            for name in json_columns:
                plain[name] = _loaded(plain[name])
            yield number, plain


def _parsed(row: dict[str, Any]) -> dict[str, Any]:
    """A row or struct without its nulls, but for texts, and what JSON text there is in it read."""
    return {
        name: _loaded(value) if name in _JSON else value
        for name, value in row.items()
        if value is not None or name in _TEXTS
    }


def _loaded(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return value
