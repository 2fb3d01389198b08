"""Packs a ranked query into a few hundred bytes and back."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any, NamedTuple

import orjson
import zstandard

from batchrank.calls import Usage
from batchrank.values import Lineage, QueryStatus, RankedQuery, Tally

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
                ranked.again,
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


class Brief(NamedTuple):
    """Of a ranked query its text, its docids in first-stage order, and their order as ranked.

    Each docid is as it stands between the quotes of a JSON string.
    """

    query: str
    docids: list[bytes]
    order: list[int]


def unpack_brief(packed: bytes, decompressor: zstandard.ZstdDecompressor) -> Brief:
    """As much of a packed ranked query as a publication needs, in a third of the time of `unpack`.

    A decompressor is no thing for two threads at once.
    """
    data = decompressor.decompress(packed)
    if b"\\" in data:
        _, _, query, docids, _, order, *_ = orjson.loads(data)
        return Brief(query, [orjson.dumps(docid)[1:-1] for docid in docids], order)
    # Nothing is escaped, so each quote begins or ends a string: [1,"qid","query",["d1",…],…
    _, _, _, text, rest = data.split(b'"', 4)
    if rest.startswith(b",[]"):
        found, rest = [], rest[3:]
    else:
        inner, _, rest = rest[3:].partition(b'"]')
        found = inner.split(b'","')
    # Scores, a list or null, then the order.
    begin = 6 if rest.startswith(b",null,") else rest.index(b"]") + 2
    order = orjson.loads(rest[begin : rest.index(b"]", begin) + 1])
    return Brief(text.decode(), found, order)


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
        again=tuple(added[3]) if len(added) > 3 else (),
    )
