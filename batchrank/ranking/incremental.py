"""Decides what a query's ranking can build on: an earlier one of its job, where little changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from batchrank.values import Document, Lineage, RankedQuery, Request

MAX_STEPS = 10
"""How many rankings build on one another before one is made in full."""
_DIGEST_BYTES = 4
"""An edited document is taken for the old one once in four thousand million edits."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a ranking is made in full again.

    `change`: the share of the candidates that are new or edited; `age`: seconds since the last full
    ranking; `one_call`: how long a list may be that takes one call in full too, None for any.
    """

    change: float
    age: float
    one_call: int | None


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier ranking of a query, and the run that made it."""

    run: int
    ranked: RankedQuery


def lineage_of(
    request: Request, depth: int, earlier: Earlier | None, limits: Limits, now: float
) -> Lineage:
    """What the ranking of `request` builds on, nothing where it has to be made in full.

    The first `depth` candidates are reranked; `now` is in seconds since the epoch.
    """
    head = request.candidates[:depth]
    digests = [_digest(document) for document in head]
    full = Lineage(now, 0, 0, (), b"".join(digests))
    if earlier is None or (last := earlier.ranked.lineage) is None:
        return full
    ranked = earlier.ranked
    if ranked.query != request.query.text:
        return full
    if last.steps >= MAX_STEPS or now - last.full_at > limits.age:
        return full
    before = dict(zip(ranked.kept, _split(last.digests), strict=False))
    place = {
        document.docid: position
        for position, (document, digest) in enumerate(zip(head, digests, strict=True))
        if before.get(document.docid) == digest
    }
    changed = len(head) - len(place)
    if changed > limits.change * len(head) or changed > len(place):
        return full
    if changed and (limits.one_call is None or len(head) <= limits.one_call):
        return full
    return Lineage(
        last.full_at,
        last.steps + 1,
        earlier.run,
        tuple(place[docid] for docid in ranked.ranking if docid in place),
        full.digests,
    )


def _digest(document: Document) -> bytes:
    text = f"{document.title or ''}\0{document.text}".encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=_DIGEST_BYTES).digest()


def _split(digests: bytes) -> Sequence[bytes]:
    return [digests[at : at + _DIGEST_BYTES] for at in range(0, len(digests), _DIGEST_BYTES)]
