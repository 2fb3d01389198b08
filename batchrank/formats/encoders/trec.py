"""Writes TREC runs: identifiers and scores alone."""

from __future__ import annotations

from batchrank.formats.encoders.base import Record, no_candidates
from batchrank.formats.records import Entry
from batchrank.formats.rows import encode_trec, trec_lines

_FIRST_STAGE = "first-stage"


class TrecRun:
    """Writes `qid Q0 docid rank score tag`.

    LineError where an identifier holds white space, and where a query has no candidates.
    """

    def __init__(self, tag: str) -> None:
        self._tag = tag

    def add(self, record: Record) -> bytes:
        """The lines of a query."""
        if not isinstance(record, Entry):
            if not record.ranking:
                raise no_candidates(record.qid)
            return encode_trec(record, self._tag)
        docids = record.request.docids
        if not docids:
            raise no_candidates(record.request.query.qid)
        ranking = zip(docids, range(1, len(docids) + 1), record.scores, strict=True)
        return trec_lines(record.request.query.qid, ranking, _FIRST_STAGE)

    def end(self) -> bytes:
        """Nothing."""
        return b""
