"""Finds the texts of ranked documents in the input again, since a store keeps none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from batchrank.errors import LineError
from batchrank.formats.lines import RawLine
from batchrank.formats.requests import parse_request
from batchrank.formats.rows import Row
from batchrank.formats.sources.source import Source, read_queries
from batchrank.formats.wording import counted
from batchrank.values import Document


class Texts:
    """Reads an input beside the rows that were made of it, both in the input's order."""

    def __init__(self, source: Source | None) -> None:
        self._source = source
        self._lines = self._read()
        self._at: RawLine | None = None
        self._missing = 0

    def of(self, row: Row) -> Mapping[str, Document]:
        """The documents of a row's line; none where the input has no such line, or another query.

        Raises UsageError where the input can't be read.
        """
        while self._at is None or self._at.number < row.line:
            self._at = next(self._lines, None)
            if self._at is None:
                break
        if self._at is None or self._at.number != row.line:
            return {}
        return _documents(self._at, row)

    def wrote(self, row: Row) -> None:
        """Count a row that was written without the texts of all its documents."""
        if any(ranked.docid not in row.documents for ranked in row.ranking):
            self._missing += 1

    def missing(self) -> Iterator[str]:
        """A sentence, where there are written rows without the texts of all their documents."""
        if self._missing:
            why = "the input is not known" if self._source is None else "the input has changed"
            yield f"texts of {counted(self._missing, 'query', 'queries')}: {why}"

    def _read(self) -> Iterator[RawLine]:
        if self._source is not None:
            for block in read_queries(self._source):
                yield from block


def _documents(line: RawLine, row: Row) -> dict[str, Document]:
    try:
        request = parse_request(line.data).request
    except LineError:
        return {}
    if request.query.qid != row.qid:
        return {}
    return {document.docid: document for document in request.candidates}
