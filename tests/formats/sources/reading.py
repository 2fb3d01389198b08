"""Reads an input to its end, for the tests of every format."""

from __future__ import annotations

from typing import Any

import orjson

from batchrank.formats.lines import RawLine
from batchrank.formats.sources.source import Source, read_queries


def lines_of(source: Source, limit: int | None = None) -> list[RawLine]:
    """All lines of a source."""
    return [line for block in read_queries(source, limit) for line in block]


def values_of(source: Source, limit: int | None = None) -> list[Any]:
    """The same as JSON."""
    return [orjson.loads(line.data) for line in lines_of(source, limit)]
