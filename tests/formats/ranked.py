"""Rankings as rows hold them, from docids."""

from __future__ import annotations

from collections.abc import Sequence

from batchrank.formats.rows import RankedDoc
from batchrank.values import Document, Ranking


def ranked_docs(ranking: Ranking, candidates: Sequence[Document]) -> tuple[RankedDoc, ...]:
    """Put candidates, given in first-stage order, in the places that `ranking` says.

    `ranking` holds each docid of `candidates` once. The score is n − rank + 1 with n the number
    of candidates, so that writing fewer of them does not change it.
    """
    places = {document.docid: place for place, document in enumerate(candidates)}
    count = len(candidates)
    return tuple(
        RankedDoc(docid, rank, place + 1, count - rank + 1, candidates[place].score)
        for rank, docid in enumerate(ranking, 1)
        for place in (places[docid],)
    )
