"""Gathers the rows of a table, one a candidate, into one JSONL line a query."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import isfinite
from typing import Any

from batchrank.errors import LineError, UsageError
from batchrank.formats.jsonline import dump_line
from batchrank.formats.lines import RawLine
from batchrank.formats.requests import UNUSABLE, list_key
from batchrank.formats.sniff import OWN_OUTPUT
from batchrank.formats.wording import listed, shown

NumberedRow = tuple[int, Mapping[str, Any]]

_NAMES = {
    "qid": ("qid", "query_id", "queryid"),
    "query": ("query", "query_text"),
    "docid": ("docid", "doc_id", "document_id", "docno", "pid"),
    "score": ("score",),
    "title": ("title",),
    "text": ("text", "segment", "contents", "content", "body", "passage", "document"),
    "metadata": ("metadata",),
    "embedding": ("embedding",),
    "weight": ("weight",),
    "extra": ("extra",),
}
_NEEDED = ("qid", "query", "docid")
_PLACE = ("docid", "rank", "score", "first_stage_rank", "first_stage_score", "filtered")
_RESULT = frozenset(("qid", "docid", "rank", "first_stage_rank", "status"))


class Columns:
    """Which column of a table holds what; all others hold metadata of the candidate."""

    def __init__(self, names: Sequence[str], where: str) -> None:
        """Raises UsageError where a column that is needed is missing, or a name stands twice."""
        lower = {name.strip().lower(): name for name in names}
        if len(lower) < len(names):
            counts = Counter(name.strip().lower() for name in names)
            twice = dict.fromkeys(name for name in names if counts[name.strip().lower()] > 1)
            raise UsageError(f"{where} has a column twice: {listed(twice)}")
        self.named = {
            what: lower[name]
            for what, synonyms in _NAMES.items()
            for name in [next((one for one in synonyms if one in lower), None)]
            if name is not None
        }
        for what in _NEEDED:
            if what not in self.named:
                raise UsageError(
                    f"{where} has no column {what} ({' or '.join(_NAMES[what])}), only "
                    f"{listed(names)}; expected one row a candidate: qid, query, docid, score, text"
                )
        if not {"text", "title"} & self.named.keys():
            raise UsageError(
                f"{where} has no column text ({' or '.join(_NAMES['text'])}), only {listed(names)}"
            )
        self.names = names
        self._kinds = {name: what for what, name in self.named.items()}
        self._others = [name for name in names if name not in self.named.values()]

    def line(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The request that consecutive rows of one query make; the first says all but candidates.

        Where rows contradict each other, or one says that it can't be used, so does the request.
        """
        first = rows[0]
        query = {"qid": self._get(first, "qid"), "text": self._get(first, "query")}
        extra = self._get(first, "extra")
        line = dict(extra) if isinstance(extra, dict) else {}
        line |= {"query": query, "candidates": [self._candidate(row) for row in rows]}
        if (weight := self._get(first, "weight")) is not None:
            line["weight"] = weight
        if (wrong := next((row[UNUSABLE] for row in rows if UNUSABLE in row), None)) is not None:
            line[UNUSABLE] = wrong
        elif other := [row for row in rows if self._get(row, "query") != query["text"]]:
            texts = f"{shown(query['text'])} and {shown(self._get(other[0], 'query'))}"
            line[UNUSABLE] = [
                "query",
                f"Rows with one qid have different query texts, {texts}: write it in each row.",
            ]
        return line

    def kind(self, name: str) -> str | None:
        """What a column holds, None for metadata."""
        return self._kinds.get(name)

    def qid(self, row: Mapping[str, Any]) -> object:
        """The qid of a row."""
        return self._get(row, "qid")

    def _get(self, row: Mapping[str, Any], what: str) -> Any:
        name = self.named.get(what)
        return None if name is None else row[name]

    def _candidate(self, row: Mapping[str, Any]) -> dict[str, Any]:
        doc = {what: self._get(row, what) for what in ("title", "text")}
        candidate: dict[str, Any] = {"docid": self._get(row, "docid")}
        candidate["score"] = self._get(row, "score")
        candidate["doc"] = {what: value for what, value in doc.items() if value is not None}
        metadata = {name: row[name] for name in self._others if row[name] is not None}
        given = self._get(row, "metadata")
        metadata |= given if isinstance(given, dict) else {}
        if metadata:
            candidate["metadata"] = metadata
        if (embedding := self._get(row, "embedding")) is not None:
            candidate["embedding"] = embedding
        return candidate


class ResultColumns:
    """The columns of batchrank's own results, which are named as their fields."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def kind(self, name: str) -> str | None:
        """The name itself, so that JSON is known."""
        return name if name not in _PLACE else None

    def qid(self, row: Mapping[str, Any]) -> object:
        """The qid of a row."""
        return row["qid"]

    def line(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The result that the rows of one query make."""
        places = [{name: row[name] for name in _PLACE if row.get(name) is not None} for row in rows]
        own = {name: value for name, value in rows[0].items() if name not in _PLACE}
        return {**own, "ranking": places}


AnyColumns = Columns | ResultColumns


def known_columns(names: Sequence[str]) -> set[str]:
    """The columns of requests that names stand for."""
    given = {name.strip().lower() for name in names}
    return {what for what, synonyms in _NAMES.items() if not given.isdisjoint(synonyms)}


def columns_of(names: Sequence[str], where: str, *, results: bool) -> AnyColumns:
    """The columns of a table of requests, or of results where they are welcome; UsageError."""
    if not set(names) >= _RESULT:
        return Columns(names, where)
    if not results:
        raise refuse_results(where)
    return ResultColumns(names)


def refuse_results(where: str) -> UsageError:
    """The error of a table of batchrank's results where queries are expected."""
    return UsageError(f"{where} {OWN_OUTPUT}.")


def gathered(rows: Iterable[NumberedRow], columns: AnyColumns) -> Iterator[RawLine]:
    """A line for each stretch of rows with one qid, with the number of its first row."""
    for _, stretch in groupby(rows, key=lambda numbered: columns.qid(numbered[1])):
        numbers, found = zip(*stretch, strict=True)
        yield RawLine(numbers[0], encoded(columns.line(found)))


def encoded(line: Mapping[str, Any]) -> bytes:
    """A line as JSON, in which a score or a weight that is NaN stays what it is."""
    items = line.get(list_key(line), ())
    numbers = [line.get("weight"), *(one.get("score") for one in items if isinstance(one, dict))]
    if all(not isinstance(number, float) or isfinite(number) for number in numbers):
        return dump_line(line).rstrip(b"\n")
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode()


def unusable(qid: object, error: LineError, line: Mapping[str, Any] | None = None) -> bytes:
    """A line that `parse_request` refuses with `error`, and what is known of it."""
    known = dict(line) if line else {"query": {"qid": qid}, "candidates": []}
    return encoded({UNUSABLE: [error.kind, str(error)], **known})
