"""Packs a ranked query into a few hundred bytes and back."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import orjson
import zstandard

from batchrank.values import Lineage, QueryStatus, RankedQuery, Tally, Usage

_VERSION = 1

Scored = tuple[tuple[str, float], ...]


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
                ranked.reduced,
                _pack_lineage(ranked.lineage),
                ranked.filtered,
            ]
        )
    )


def _pack_lineage(lineage: Lineage | None) -> list[object] | None:
    if lineage is None:
        return None
    return [*astuple(lineage)[:-1], lineage.digests.hex()]


def _unpack_lineage(packed: list[Any] | None) -> Lineage | None:
    if packed is None:
        return None
    full_at, steps, run, earlier, digests = packed
    return Lineage(full_at, steps, run, tuple(earlier), bytes.fromhex(digests))


def pack_scored(scored: Scored) -> bytes | None:
    """What of an answer came with numbers, as compressed JSON; nothing is stored as NULL."""
    return zstandard.compress(orjson.dumps(scored)) if scored else None


def unpack_scored(packed: bytes | None) -> Scored:
    """The inverse of `pack_scored`."""
    if packed is None:
        return ()
    return tuple((name, score) for name, score in orjson.loads(zstandard.decompress(packed)))


def unpack_order(packed: bytes) -> tuple[str, list[str], list[str]]:
    """Of a packed ranked query only its text, its docids in first-stage order, and as ranked."""
    _, _, query, docids, _, order, *_ = orjson.loads(zstandard.decompress(packed))
    return query, docids, [docids[place] for place in order]


def unpack(packed: bytes) -> RankedQuery:
    """The inverse of `pack`, for what earlier versions packed too."""
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
        *added,
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
        reduced=bool(added and added[0]),
        lineage=_unpack_lineage(added[1]) if len(added) > 1 else None,
        filtered=tuple((place, reason) for place, reason in added[2]) if len(added) > 2 else (),
    )
