"""Cache entries as a Parquet file with a column a field; its metadata tell how they were made."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, cast

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from batchrank.entries import FORMAT
from batchrank.formats.atomic import AtomicFile
from batchrank.publishing.target import Entry

_MARK = "batchrank-cache"
_GROUP = 20_000
"""Entries of a row group."""
_VALUE: dict[str, pa.DataType] = {
    "docids": pa.list_(pa.string()),
    "scores": pa.list_(pa.int64()),
    "model": pa.string(),
    "template": pa.string(),
    "created": pa.string(),
    "job": pa.string(),
}
_COLUMNS: dict[str, pa.DataType] = {"key": pa.string(), "expires": pa.float64(), **_VALUE}
_SCHEMA = pa.schema(_COLUMNS)


class _Sink(io.RawIOBase):
    """An AtomicFile as the file that pyarrow wants."""

    def __init__(self, file: AtomicFile) -> None:
        self._file: AtomicFile | None = file

    def abandon(self) -> None:
        """Take what is still written, and forget it."""
        self._file = None

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data)
        if self._file is not None:
            self._file.write(bytes(view))
        return view.nbytes


class ParquetWriter:
    """See `Writer`."""

    def __init__(self, file: AtomicFile, header: dict[str, str]) -> None:
        schema = _SCHEMA.with_metadata({_MARK: str(FORMAT), **header})
        self._schema = schema
        self._sink = _Sink(file)
        self._writer = pq.ParquetWriter(cast(IO[bytes], self._sink), schema, compression="zstd")
        self._rows: list[dict[str, Any]] = []

    def write(self, entries: Sequence[Entry]) -> None:
        """See `Writer`."""
        self._rows += [
            {"key": entry.key, "expires": entry.expires, **orjson.loads(entry.value)}
            for entry in entries
        ]
        if len(self._rows) >= _GROUP:
            self._flush()

    def close(self) -> None:
        """See `Writer`."""
        self._flush()
        self._writer.close()

    def abandon(self) -> None:
        """See `Writer`; pyarrow wants to end what it began."""
        self._sink.abandon()
        self._writer.close()

    def _flush(self) -> None:
        self._writer.write_table(pa.Table.from_pylist(self._rows, schema=self._schema))
        self._rows = []


class Parquet:
    """See `Format`."""

    def writer(self, file: AtomicFile, header: dict[str, str]) -> ParquetWriter:
        """See `Format`."""
        return ParquetWriter(file, header)

    def header(self, path: Path) -> dict[str, str]:
        """See `Format`."""
        metadata = pq.read_schema(path).metadata or {}
        found = {key.decode(): value.decode("utf-8", "replace") for key, value in metadata.items()}
        if found.get(_MARK) != str(FORMAT):
            raise ValueError("its metadata do not say so")
        return found

    def entries(self, path: Path) -> Iterator[list[Entry]]:
        """See `Format`."""
        with pq.ParquetFile(path) as file:
            if not file.schema_arrow.equals(_SCHEMA):
                raise ValueError("its columns are not those of cache entries")
            for batch in file.iter_batches(_GROUP):
                yield [
                    Entry(
                        row["key"],
                        orjson.dumps({name: row[name] for name in _VALUE}),
                        row["expires"],
                    )
                    for row in batch.to_pylist()
                ]
