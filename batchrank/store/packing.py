"""Packs a ranked query into a few hundred bytes and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple
from typing import Any, NamedTuple

import orjson
import zstandard

from batchrank.calls import Usage
from batchrank.values import Lineage, QueryStatus, RankedQuery, Tally

Scored = tuple[tuple[str, float], ...]
_OF_VERSION_1 = b"["


def pack(ranked: RankedQuery) -> bytes:
    """As four compressed lines, so that a publication copies what it needs as it stands.

    These are the number of candidates, their docids in the order of the ranking, the query, and a
    list of all else: names would take more room than values.
    """
    docids = ranked.docids
    scores = ranked.scores if any(score is not None for score in ranked.scores) else None
    rest = [
        ranked.qid,
        scores,
        ranked.order,
        ranked.status,
        ranked.tally.counts,
        ranked.answers,
        ranked.faults,
        ranked.calls,
        (ranked.usage.prompt_tokens, ranked.usage.completion_tokens),
        ranked.error_kind,
        ranked.error,
        ranked.reduced,
        _pack_lineage(ranked.lineage),
        ranked.filtered,
        ranked.again,
    ]
    listed = orjson.dumps([docids[place] for place in ranked.order])
    return zstandard.compress(
        b"%d\n%b\n%b\n%b" % (len(docids), listed, orjson.dumps(ranked.query), orjson.dumps(rest))
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
    """What a publication needs of a ranked query: `docids` are a JSON array, best first."""

    length: int
    docids: bytes
    query: str


def unpack_briefs(packed: Iterable[bytes]) -> list[Brief]:
    """As much of packed ranked queries as a publication needs.

    They are decompressed in one call, so that other threads can go on meanwhile.
    """
    frames: list[bytes | bytearray | memoryview[int]] = list(packed)
    if not frames:
        return []
    unpacked = zstandard.ZstdDecompressor().multi_decompress_to_buffer(frames)
    return [_brief(unpacked[place].tobytes()) for place in range(len(frames))]


def _brief(data: bytes) -> Brief:
    if data.startswith(_OF_VERSION_1):
        ranked = _unpack_version_1(data)
        return Brief(len(ranked.docids), orjson.dumps(ranked.ranking), ranked.query)
    count, docids, query, _ = data.split(b"\n", 3)
    return Brief(int(count), docids, orjson.loads(query))


def unpack(packed: bytes) -> RankedQuery:
    """The inverse of `pack`, for what earlier versions packed too."""
    data = zstandard.decompress(packed)
    if data.startswith(_OF_VERSION_1):
        return _unpack_version_1(data)
    _, listed, query, rest = map(orjson.loads, data.split(b"\n"))
    qid, scores, order, *others = rest
    docids = [""] * len(listed)
    for place, docid in zip(order, listed, strict=True):
        docids[place] = docid
    return _ranked(qid, query, docids, scores, order, *others)


def _unpack_version_1(data: bytes) -> RankedQuery:
    """One list of all, to which fields were added in time, docids in first-stage order."""
    _, *fields = orjson.loads(data)
    return _ranked(*fields)


def _ranked(
    qid: str,
    query: str,
    docids: Sequence[str],
    scores: Sequence[float | None] | None,
    order: Sequence[int],
    status: str,
    tally: Sequence[int],
    answers: Sequence[int],
    faults: Sequence[str],
    calls: int,
    usage: Sequence[int],
    error_kind: str | None,
    error: str | None,
    reduced: bool = False,
    lineage: list[Any] | None = None,
    filtered: Sequence[tuple[int, str]] = (),
    again: Sequence[int] = (),
) -> RankedQuery:
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
        reduced=reduced,
        lineage=_unpack_lineage(lineage),
        filtered=tuple((place, reason) for place, reason in filtered),
        again=tuple(again),
    )
