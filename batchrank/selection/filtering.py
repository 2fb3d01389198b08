"""Takes candidates away before a model sees them, with a reason, and puts them back below."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime

from batchrank.values import Document, RankedQuery, Request

_NUMBER = re.compile(r"\s*[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?\s*")

Rule = Callable[[int, Document], bool]
"""Whether the document at a place of the first stage, from 0, passes."""
Removed = tuple[tuple[int, str], ...]
"""Places of the first stage, rising, each with the name of the first rule that it did not pass."""


def first(count: int) -> Rule:
    """The first `count` pass."""
    return lambda place, _: place < count


def scored(least: float) -> Rule:
    """Those with a first-stage score of at least `least` pass; what has no score does not."""
    return lambda _, document: document.score is not None and document.score >= least


def having(key: str, values: Collection[str | float]) -> Rule:
    """Those whose metadata has one of `values` under `key` pass; see `_among`."""
    among = _among(values)
    return lambda _, document: among(document.metadata.get(key))


def lacking(key: str, values: Collection[str | float]) -> Rule:
    """Those whose metadata has none of `values` under `key` pass; see `_among`."""
    among = _among(values)
    return lambda _, document: not among(document.metadata.get(key))


def _among(values: Collection[str | float]) -> Callable[[str | float | None], bool]:
    """Whether a value is one of `values`.

    A number is also the text that spells it, since all is text in CSV; two texts are the same only
    where each character is: `007` is not `7`.
    """
    exact = frozenset(values)
    numbers = frozenset(value for value in values if not isinstance(value, str))
    spelled = frozenset(map(_spelled, exact - numbers)) - {None}

    def among(value: str | float | None) -> bool:
        if value in exact:
            return True
        return _spelled(value) in numbers if isinstance(value, str) else value in spelled

    return among


def _spelled(value: str | float) -> float | None:
    """The number that a text spells, None where it spells none."""
    return float(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else None


def dated(key: str, since: date | None, until: date | None) -> Rule:
    """Those whose metadata has a day from `since` to `until`, both included, under `key` pass.

    A time counts as the day that is written, whatever its zone; what is no ISO 8601 date does not
    pass.
    """
    earliest, latest = since or date.min, until or date.max

    def passes(_: int, document: Document) -> bool:
        day = _day(document.metadata.get(key))
        return day is not None and earliest <= day <= latest

    return passes


def _day(value: str | float | None) -> date | None:
    try:
        return datetime.fromisoformat(value).date() if isinstance(value, str) else None
    except ValueError:
        return None


def removed_by(rules: Mapping[str, Rule], candidates: Sequence[Document]) -> Removed:
    """What does not pass all of `rules`."""
    return tuple(
        (place, name)
        for place, document in enumerate(candidates)
        if (name := next((name for name in rules if not rules[name](place, document)), None))
    )


def without(request: Request, removed: Removed) -> Request:
    """The request with the candidates that are left."""
    if not removed:
        return request
    gone = dict(removed)
    left = (one for place, one in enumerate(request.candidates) if place not in gone)
    return replace(request, candidates=tuple(left))


def restored(ranked: RankedQuery, request: Request, removed: Removed) -> RankedQuery:
    """The outcome of `request` from that of what was left of it: `removed` stands below."""
    if not removed:
        return ranked
    gone = dict(removed)
    left = [place for place in range(len(request.candidates)) if place not in gone]
    return replace(
        ranked,
        docids=request.docids,
        scores=tuple(document.score for document in request.candidates),
        order=(*(left[place] for place in ranked.order), *gone),
        filtered=removed,
    )
