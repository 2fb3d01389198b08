"""Orders documents by the scores an answer gives them, where it is clear that they are scores."""

from __future__ import annotations

import re
from dataclasses import dataclass

from batchrank.answers.reading import Found, failed, integer

_SCORE = re.compile(
    r"[\"'(*]{0,3}(?P<value>\d{1,9}+(?:\.\d++)?)"
    r"\s?(?P<unit>(?:/|out\s+of)\s?(?P<scale>\d{1,9}+)|%|points?|pts?|stars?|分)?[\"')*.]{0,4}",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Score:
    """A number that rates a document; scores of different units can't be compared."""

    value: float
    unit: str = ""


def score(text: str) -> Score | None:
    """Read `9`, `0.9`, `9/10`, `9 out of 10` or `90%`; None where it is anything else."""
    match = _SCORE.fullmatch(text.strip())
    if match is None:
        return None
    if match["scale"]:
        scale = integer(match["scale"])
        return Score(float(match["value"]) / scale, "fraction") if scale else None
    return Score(float(match["value"]), match["unit"] or "")


def by_scores(pairs: list[tuple[int, Score | None]]) -> Found:
    """Order numbers by their scores, highest first, ties as listed.

    Where a score can't be read or compared, the order in which the documents are listed stands.
    """
    listed = tuple(number for number, _ in pairs)
    scores = [rating for _, rating in pairs if rating is not None]
    if len(scores) < len(pairs) or len({rating.unit for rating in scores}) > 1:
        return Found(listed)
    order = sorted(range(len(pairs)), key=lambda place: -scores[place].value)
    ranked = tuple(listed[place] for place in order)
    return Found(ranked, ("scores",) if ranked != listed else ())


def by_pairs(pairs: list[tuple[int, int]], documents: int, *, identified: bool) -> Found:
    """Order by pairs of integers, of which it isn't said which is the document and which a score.

    `identified` says that the first is known to be a document. Pairs that can be read in two ways
    that differ are ambiguous.
    """
    firsts = tuple(first for first, _ in pairs)
    seconds = tuple(second for _, second in pairs)
    places = tuple(range(1, len(pairs) + 1))
    if not identified and firsts == places:
        distinct = len(set(seconds)) == len(seconds)
        if distinct and all(1 <= second <= documents for second in seconds):
            return Found(firsts) if firsts == seconds else failed("ambiguous")
    if tuple(sorted(seconds)) == places and len(pairs) > 1:
        # These may be ranks, lowest first, or scores, highest first.
        ordered = seconds in (places, places[::-1])
        return Found(firsts) if ordered else failed("ambiguous")
    return by_scores([(first, Score(second)) for first, second in pairs])
