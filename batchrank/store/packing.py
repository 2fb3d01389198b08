"""Packs a ranked query into a few hundred bytes and back."""

from __future__ import annotations

from dataclasses import astuple

import orjson
import zstandard

from batchrank.values import QueryStatus, RankedQuery, Tally, Usage

_VERSION = 1


def pack(ranked: RankedQuery) -> bytes:
    """As compressed JSON: a list, since names would take more room than values."""
    scores = ranked.scores if any(score is not None for score in ranked.scores) else None
    return zstandard.compress(
        orjson.dumps(
            [
                _VERSION,
                ranked.qid,
                ranked.query,
                ranked.docids,
                scores,
                ranked.order,
                ranked.status,
                astuple(ranked.tally),
                ranked.answers,
                ranked.faults,
                ranked.calls,
                astuple(ranked.usage),
                ranked.error_kind,
                ranked.error,
            ]
        )
    )


def unpack(packed: bytes) -> RankedQuery:
    """The inverse of `pack`."""
    (
        _,
        qid,
        query,
        docids,
        scores,
        order,
        status,
        tally,
        answers,
        faults,
        calls,
        usage,
        error_kind,
        error,
    ) = orjson.loads(zstandard.decompress(packed))
    return RankedQuery(
        qid=qid,
        query=query,
        docids=tuple(docids),
        scores=tuple(scores) if scores is not None else (None,) * len(docids),
        order=tuple(order),
        status=QueryStatus(status),
        tally=Tally(*tally),
        answers=tuple(answers),
        faults=tuple(faults),
        calls=calls,
        usage=Usage(*usage),
        error_kind=error_kind,
        error=error,
    )
