"""Mixes the model's order with the first stage's scores.

final = alpha * model + (1 - alpha) * first stage, both from 0 to 1, as dense retrievers are mixed
with BM25 (Lin et al. 2021, "Pretrained Transformers for Text Ranking", section 3.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

Normalise = Literal["rank", "min-max"]
_DIGITS = 12
"""Sums that are equal but for the rounding of floats are ties."""


def interpolated(
    order: Sequence[int], scores: Sequence[float | None], alpha: float, normalise: Normalise
) -> tuple[int, ...]:
    """Reorder `order`, places in the first stage, best first; ties stay in its order.

    `scores` are the first stage's, by place. A model gives an order alone, so its part is the rank.
    """
    model = by_rank(len(order))
    first_stage = by_rank(len(order)) if normalise == "rank" else by_score(scores)
    final = {
        place: round(alpha * model[rank] + (1 - alpha) * first_stage[place], _DIGITS)
        for rank, place in enumerate(order)
    }
    return tuple(sorted(order, key=final.__getitem__, reverse=True))


def by_rank(count: int) -> list[float]:
    """1 for the first place, 0 for the last, evenly between them."""
    return [1 - place / max(1, count - 1) for place in range(count)]


def by_score(scores: Sequence[float | None]) -> list[float]:
    """1 for the highest score, 0 for the lowest; the rank's value where there is no score.

    Where scores rise, which are then no scores to rank by, or are all the same, ranks alone count.
    """
    ranks = by_rank(len(scores))
    known = [score for score in scores if score is not None]
    if not known or any(later > before for before, later in pairwise(known)):
        return ranks
    # Halves, because the difference of two large floats can be infinite.
    low = known[-1] / 2
    spread = known[0] / 2 - low
    if spread <= 0:
        return ranks
    return [
        rank if score is None else (score / 2 - low) / spread
        for score, rank in zip(scores, ranks, strict=True)
    ]
