"""What writes a format: it turns records into bytes, one by one."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Protocol

from batchrank.errors import LineError
from batchrank.formats.records import Entry
from batchrank.formats.rows import Row
from batchrank.formats.wording import shown
from batchrank.values import Document, Query, Request

Record = Entry | Row
"""A query with its candidates, or what became of it."""


class Encoder(Protocol):
    """Writes one file. All records of a file are entries, or all are rows."""

    def add(self, record: Record) -> bytes:
        """The bytes to write now, perhaps none; LineError where the format can't hold a record."""
        ...

    def end(self) -> bytes:
        """The bytes behind the last record."""
        ...


class OnceEach:
    """Refuses what a format can't tell apart: a second record with a qid, one without any.

    A format without a status (`has_status`) does not hold lines that failed before anything was
    asked either: they would look like a ranking.
    """

    def __init__(self, encoder: Encoder, *, has_status: bool) -> None:
        self._encoder = encoder
        self._has_status = has_status
        self._held: set[str] = set()

    def add(self, record: Record) -> bytes:
        """The bytes of a record that the format can hold, else LineError."""
        if isinstance(record, Entry):
            qid: str | None = record.request.query.qid
        else:
            qid = record.qid
            if record.error and not self._has_status and not any(record.windows.values()):
                raise LineError(record.error.kind, record.error.message, qid)
        if qid is None:
            raise LineError("qid", "The qid is not known.")
        if qid in self._held:
            raise LineError("duplicate", f"The qid {shown(qid)} stands in the output already.", qid)
        data = self._encoder.add(record)
        self._held.add(qid)
        return data

    def end(self) -> bytes:
        """As the encoder's own."""
        return self._encoder.end()


def no_candidates(qid: str | None) -> LineError:
    """Why a query has no place in a format with a row a candidate."""
    return LineError("candidates", "There are no candidates, and so no row to write.", qid)


def as_entry(record: Record) -> Entry:
    """A record as a request whose candidates are as they were put in order.

    Of a result only query, docids, scores and the texts that are known are left, and the history of
    calls.
    """
    if isinstance(record, Entry):
        return record
    documents = tuple(
        replace(
            record.documents.get(ranked.docid, Document(ranked.docid, "")),
            score=float(ranked.score),
        )
        for ranked in record.ranking
    )
    history = record.invocations
    extra = {} if history is None else {"invocations_history": list(map(asdict, history))}
    query = Query(record.qid or "", record.query or "")
    return Entry(Request(query, documents), [{}] * len(documents), extra)
