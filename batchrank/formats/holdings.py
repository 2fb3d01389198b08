"""Tells by its content whether a file holds what a person made, so that no output replaces it."""

from __future__ import annotations

import re
from enum import StrEnum
from itertools import chain
from pathlib import Path

from batchrank.errors import LineError, UsageError
from batchrank.formats.lines import split_lines
from batchrank.formats.opening import opened
from batchrank.formats.requests import parse_request
from batchrank.formats.sniff import json_object
from batchrank.formats.sources.parquet import is_parquet
from batchrank.formats.sources.source import Source, read_queries

_LOOKED_AT = 20
"""Queries, as the first may be one that can't be used."""
_SQLITE = b"SQLite format 3\x00"
_JUDGEMENT = re.compile(rb"\S+\s+\S+\s+\S+\s+[-+]?\d+")


class Holding(StrEnum):
    """What would be lost; the value is how it is named."""

    STORE = "an SQLite database"
    SETTINGS = "settings in TOML"
    QUERIES = "queries with candidates"
    JUDGEMENTS = "relevance judgements"
    GRADES = "a person's grades"


def holding(path: Path) -> Holding | None:
    """What the file at `path` holds; None for what can be made again, and where no file is.

    Rankings, TREC runs and labels that nobody corrected are made by batchrank; of anything else
    it knows nothing, as of what it can't read.
    """
    if not path.is_file():
        return None
    try:
        with opened(str(path)) as file:
            if file.head.startswith(_SQLITE):
                return Holding.STORE
            if path.suffix == ".toml":
                return Holding.SETTINGS if file.head.strip() else None
            if is_parquet(file.head):
                return _in_queries(path)
        return _in_lines(path)
    except UsageError:
        return None


def _in_lines(path: Path) -> Holding | None:
    with opened(str(path)) as file:
        lines = filter(None, map(bytes.strip, split_lines(file.chunks)))
        first = next(lines, b"")
        if _JUDGEMENT.fullmatch(first):
            return Holding.JUDGEMENTS
        if "corrected" in (row := json_object(first)):
            # A person may have changed any label.
            rows = chain([row], map(json_object, lines))
            graded = any(one.get("corrected") is not None for one in rows)
            return Holding.GRADES if graded else None
    return _in_queries(path)


def _in_queries(path: Path) -> Holding | None:
    """Whether there is a query that could be ranked; UsageError where it is a table of rankings."""
    block = next(read_queries(Source(str(path)), _LOOKED_AT), [])
    return Holding.QUERIES if any(_is_request(line.data) for line in block) else None


def _is_request(line: bytes) -> bool:
    try:
        parse_request(line)
    except LineError:
        return False
    return True
