"""Writes CSV, TSV and Parquet with one row a candidate, and Parquet with one row a query."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import orjson

from batchrank.formats.encoders.base import Record, no_candidates
from batchrank.formats.jsonline import dump_line
from batchrank.formats.records import Entry
from batchrank.formats.rows import FilteredDoc
from batchrank.formats.sources.parquet import import_pyarrow

_GROUP = 16 * 1024
"""Rows that are held back until they are written together."""
_NESTED_GROUP = 256

REQUEST_COLUMNS: Mapping[str, str] = {
    "qid": "string",
    "query": "string",
    "docid": "string",
    "score": "double",
    "title": "string",
    "text": "string",
    "metadata": "string",
    "embedding": "doubles",
    "weight": "double",
    "extra": "string",
}
RESULT_COLUMNS: Mapping[str, str] = {
    "qid": "string",
    "query": "string",
    "docid": "string",
    "rank": "int64",
    "score": "int64",
    "first_stage_rank": "int64",
    "first_stage_score": "double",
    "filtered": "string",
    "status": "string",
    "windows": "string",
    "calls": "int64",
    "prompt_tokens": "int64",
    "completion_tokens": "int64",
    "model": "string",
    "template": "string",
    "reduced": "bool",
    "incremental": "bool",
    "error": "string",
}
"""What each column holds; of results those of a query stand in all of its rows."""
_OF_CANDIDATES = frozenset(
    (
        *("docid", "rank", "score", "first_stage_rank", "first_stage_score", "filtered"),
        *("title", "text", "metadata", "embedding"),
    )
)


def columns_of(record: Record) -> Mapping[str, str]:
    """The columns of a table of such records."""
    return REQUEST_COLUMNS if isinstance(record, Entry) else RESULT_COLUMNS


class Delimited:
    """Writes CSV or TSV, quoted as RFC 4180 says where that is needed."""

    def __init__(self, delimiter: str) -> None:
        self._buffer = io.StringIO()
        self._writer = csv.writer(self._buffer, delimiter=delimiter, lineterminator="\r\n")
        self._columns: Mapping[str, str] | None = None

    def add(self, record: Record) -> bytes:
        """The rows of a query; LineError where it has none."""
        rows = _rows(record)
        if self._columns is None:
            self._columns = columns_of(record)
            self._writer.writerow(self._columns)
        self._writer.writerows([_cell(row[name]) for name in self._columns] for row in rows)
        data = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        return data.encode()

    def end(self) -> bytes:
        """Nothing."""
        return b""


class Parquet:
    """Writes Parquet in row groups, with one row a candidate, or `nested` with one a query."""

    def __init__(self, *, nested: bool) -> None:
        self._arrow, self._parquet = import_pyarrow()
        self._nested = nested
        self._sink = _Sink()
        self._rows: list[Mapping[str, Any]] = []
        self._columns = REQUEST_COLUMNS
        self._writer: Any = None

    def add(self, record: Record) -> bytes:
        """A row group, once there are enough rows; LineError where a query has none."""
        self._columns = columns_of(record)
        self._rows += [_nested(record)] if self._nested else _rows(record)
        if len(self._rows) >= (_NESTED_GROUP if self._nested else _GROUP):
            self._write()
        return self._sink.taken()

    def end(self) -> bytes:
        """The last row group and the index of all."""
        self._write()
        self._writer.close()
        return self._sink.taken()

    def _write(self) -> None:
        schema = self._schema()
        if self._writer is None:
            self._writer = self._parquet.ParquetWriter(self._sink, schema)
        self._writer.write_table(self._arrow.Table.from_pylist(self._rows, schema=schema))
        self._rows = []

    def _schema(self) -> Any:
        pa = self._arrow
        types = {"doubles": pa.list_(pa.float64()), "double": pa.float64(), "bool": pa.bool_()}
        types |= {"string": pa.string(), "int64": pa.int64()}
        fields = [pa.field(name, types[kind]) for name, kind in self._columns.items()]
        if not self._nested:
            return pa.schema(fields)
        inner = [field for field in fields if field.name in _OF_CANDIDATES]
        outer = [field for field in fields if field.name not in _OF_CANDIDATES]
        return pa.schema([*outer, pa.field(_list(self._columns), pa.list_(pa.struct(inner)))])


class _Sink(io.RawIOBase):
    """Keeps what is written to it until it is taken."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._parts.append(bytes(data))
        return len(self._parts[-1])

    def taken(self) -> bytes:
        """All that was written since it was taken last."""
        data = b"".join(self._parts)
        self._parts = []
        return data


def _list(columns: Mapping[str, str]) -> str:
    return "candidates" if columns is REQUEST_COLUMNS else "ranking"


def _rows(record: Record) -> list[dict[str, Any]]:
    query = _of_query(record)
    rows = [{**query, **candidate} for candidate in _of_candidates(record)]
    if not rows:
        raise no_candidates(query["qid"])
    return rows


def _nested(record: Record) -> dict[str, Any]:
    return {**_of_query(record), _list(columns_of(record)): list(_of_candidates(record))}


def _of_query(record: Record) -> dict[str, Any]:
    if isinstance(record, Entry):
        query = record.request.query
        return {
            "qid": query.qid,
            "query": query.text,
            "weight": None if record.request.weight == 1 else record.request.weight,
            "extra": _json(record.extra),
        }
    return {
        "qid": record.qid,
        "query": record.query,
        "status": str(record.status),
        "windows": _json({str(status): count for status, count in record.windows.items()}),
        "calls": record.calls,
        "prompt_tokens": record.prompt_tokens,
        "completion_tokens": record.completion_tokens,
        "model": _text(record.model),
        "template": record.template,
        "reduced": record.reduced,
        "incremental": record.incremental,
        "error": _json({**asdict(record.error), "line": record.line}) if record.error else None,
    }


def _of_candidates(record: Record) -> Iterator[dict[str, Any]]:
    if isinstance(record, Entry):
        for document, metadata in record.candidates:
            yield {
                "docid": document.docid,
                "score": document.score,
                "title": document.title,
                "text": document.text,
                "metadata": _json(metadata),
                "embedding": list(document.embedding) or None,
            }
        return
    for ranked in record.ranking:
        yield {
            "docid": ranked.docid,
            "rank": ranked.rank,
            "score": ranked.score,
            "first_stage_rank": ranked.first_stage_rank,
            "first_stage_score": ranked.first_stage_score,
            "filtered": ranked.filtered if isinstance(ranked, FilteredDoc) else None,
        }


def _json(value: Mapping[str, Any]) -> str | None:
    return dump_line(value).decode().rstrip("\n") if value else None


def _text(value: str | None) -> str | None:
    """Text without halves of characters, which a server may put in the name of its model."""
    return value and value.encode(errors="replace").decode()


def _cell(value: object) -> object:
    """A value as csv.writer takes it: lists as JSON, booleans as JSON has them."""
    return orjson.dumps(value).decode() if isinstance(value, bool | list) else value
