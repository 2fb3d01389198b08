"""Reads CSV and TSV files with a header and one row a candidate."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Protocol

import orjson

from batchrank.errors import UsageError
from batchrank.formats.lines import MAX_LINE, RawLine, split_lines
from batchrank.formats.opening import Opened
from batchrank.formats.sources.tables import (
    AnyColumns,
    NumberedRow,
    columns_of,
    gathered,
    known_columns,
)

_TEXTS = ("qid", "query", "text")
_NUMBERS = ("score", "weight")
_JSON = ("metadata", "embedding", "extra", "windows", "error")
_SEPARATORS = ("\t", ",", ";")


class _Reader(Protocol):
    """What csv.reader makes."""

    @property
    def line_num(self) -> int: ...
    def __iter__(self) -> Iterator[list[str]]: ...


def separator(head: bytes) -> str:
    """Comma or semicolon, whichever the header has more of."""
    first = head.split(b"\n", 1)[0]
    return ";" if first.count(b";") > first.count(b",") else ","


def separator_of_table(head: bytes) -> str | None:
    """What separates the columns, where the first line is a header: names two that are known."""
    first = head.split(b"\n", 1)[0].decode(errors="replace")
    for one in _SEPARATORS:
        names = [name.strip().strip('"') for name in first.split(one)]
        if len(names) > 2 and len(known_columns(names)) > 1:
            return one
    return None


def delimited_lines(file: Opened, delimiter: str, *, results: bool) -> Iterator[RawLine]:
    """The queries of a table, quoted as RFC 4180 says, numbered by the line each begins in.

    An empty cell is no value, except as a text. Raises UsageError where the header can't be used
    or, with the line, where the file is not UTF-8 or a quote is not closed.
    """
    csv.field_size_limit(MAX_LINE)
    reader = csv.reader(_decoded(file), delimiter=delimiter, strict=True)
    try:
        header = next(reader, None)
        if header is None:
            return
        columns = columns_of(header, file.name, results=results)
        yield from gathered(_rows(reader, header, columns, file.name), columns)
    except csv.Error as error:
        raise UsageError(f"{file.name}, line {reader.line_num}: {error}") from error


def _rows(
    reader: _Reader, header: list[str], columns: AnyColumns, name: str
) -> Iterator[NumberedRow]:
    kinds = [columns.kind(column) for column in header]
    begin = reader.line_num + 1
    rows = iter(reader)
    while True:
        try:
            cells = next(rows, None)
        except csv.Error as error:
            if reader.line_num == begin:
                raise
            raise UsageError(
                f"{name}, line {begin}: the row that begins here has a quote that is not closed "
                f"where it should be ({error} in line {reader.line_num})"
            ) from error
        if cells is None:
            return
        number, begin = begin, reader.line_num + 1
        if not cells:
            continue
        if len(cells) != len(header):
            raise UsageError(
                f"{name}, line {number}: {len(cells)} columns, the header has {len(header)}"
            )
        yield number, dict(zip(header, map(_value, kinds, cells), strict=True))


def _value(kind: str | None, cell: str) -> object:
    """What a cell stands for; one that is not what it should be is refused with its line."""
    if not cell:
        return cell if kind in _TEXTS else None
    try:
        if kind in _NUMBERS:
            return float(cell)
        return orjson.loads(cell) if kind in _JSON else cell
    except ValueError:  # the base of orjson.JSONDecodeError
        return cell


def _decoded(file: Opened) -> Iterator[str]:
    """Lines with their ends, as csv.reader wants them."""
    for number, line in enumerate(split_lines(file.chunks), 1):
        if len(line) > MAX_LINE:
            raise UsageError(f"{file.name}, line {number}: longer than {MAX_LINE >> 20} MB")
        try:
            yield line.decode() + "\n"
        except UnicodeDecodeError as error:
            raise UsageError(
                f"{file.name}, line {number}: byte {error.start + 1} "
                f"(0x{line[error.start]:02x}) is not UTF-8"
            ) from None
