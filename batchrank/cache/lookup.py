"""What a look-up asks for, and what an entry says of the candidates at hand; no I/O."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from numbers import Integral
from typing import NamedTuple

from batchrank.entries import Scheme, entry_key, stored_docids
from batchrank.errors import TargetError


class CacheStatus(StrEnum):
    """How much of a query the cache knows."""

    HIT = "hit"
    """All the candidates given."""
    PARTIAL = "partial"
    """Some; the others follow in first-stage order."""
    MISS = "miss"
    """None: all are in first-stage order."""


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a look-up: docids, best first, each once.

    `generation` is the one that was read, None where nothing is published.
    """

    status: CacheStatus
    docids: tuple[str, ...]
    generation: int | None


class Reply(NamedTuple):
    """What readers see at one moment: the current generation, how its keys are made, an entry."""

    generation: int
    scheme: str
    value: bytes | str | None


Lookup = Generator[str, Reply | None, tuple[Found, Scheme]]
"""Yields keys, is sent what is found for each, None where nothing is published.

Returns the answer, and how keys are made there.
"""


def look_up(query: str, given: Sequence[str | int] | None, scheme: Scheme) -> Lookup:
    """Find an entry, by keys as `scheme` makes them, or else as the current generation does.

    Raises ValueError where the query is no text, a candidate no text or integer, or none are given
    where its keys include them, and TargetError where what is found is not what batchrank writes.
    """
    if not isinstance(query, str):
        raise ValueError(f"the query is {query!r:.60} ({type(query).__name__}), expected a text")
    candidates = None if given is None else _docids(given)
    while True:
        reply = yield entry_key(query, candidates, scheme)
        if reply is None:
            return Found(CacheStatus.MISS, _unique(candidates or ()), None), scheme
        try:
            current = Scheme.parse(reply.scheme)
        except ValueError as error:
            raise TargetError(
                f"the cache's keys are made in a way that is not known here ({reply.scheme!r}): "
                "update batchrank, or publish again"
            ) from error
        if current == scheme:
            break
        scheme = current
    if reply.value is None:
        return Found(CacheStatus.MISS, _unique(candidates or ()), reply.generation), scheme
    try:
        stored = stored_docids(reply.value)
    except ValueError as error:
        raise TargetError(f"the cache holds something else than an entry: {error}") from error
    return ordered(stored, candidates, reply.generation), scheme


def ordered(stored: Sequence[str], candidates: Sequence[str] | None, generation: int) -> Found:
    """The stored order limited to `candidates`, behind it those that it doesn't have."""
    if candidates is None:
        return Found(CacheStatus.HIT, tuple(stored), generation)
    given = dict.fromkeys(candidates)
    known = [docid for docid in stored if docid in given]
    new = given.keys() - set(known)
    if not new:
        return Found(CacheStatus.HIT, tuple(known), generation)
    status = CacheStatus.PARTIAL if known else CacheStatus.MISS
    docids = (*known, *(docid for docid in given if docid in new))
    return Found(status, docids, generation)


def _docids(candidates: Sequence[str | int]) -> list[str]:
    """Docids as texts; of integers their digits, as in an input."""
    if isinstance(candidates, str | bytes):
        raise ValueError(f"the candidates are {candidates!r:.60}, expected a list of docids")
    for docid in candidates:
        if isinstance(docid, bool) or not isinstance(docid, str | Integral):
            raise ValueError(
                f"a candidate is {docid!r:.60} ({type(docid).__name__}), expected a docid: a text "
                "or an integer"
            )
    return list(map(str, candidates))


def _unique(docids: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(docids))
