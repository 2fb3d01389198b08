"""Maximal marginal relevance: each next document is good and unlike those above it.

Carbonell and Goldstein 1998, "The Use of MMR, Diversity-Based Reranking".
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from math import sqrt

from batchrank.selection.words import words


def diversified(order: Sequence[int], texts: Sequence[str], weight: float) -> list[int]:
    """Reorder `order`, places in `texts`, by MMR with lambda `weight`; ties stay in its order.

    Relevance falls evenly with the rank, from 1 to 1/n. Similarity is the cosine of term counts.
    """
    vectors = {place: _unit(texts[place]) for place in order}
    left: defaultdict[str, dict[int, float]] = defaultdict(dict)
    for place, vector in vectors.items():
        for term, value in vector.items():
            left[term][place] = value
    relevance = {place: 1 - rank / len(order) for rank, place in enumerate(order)}
    nearest = dict.fromkeys(order, 0.0)
    chosen: list[int] = []
    while nearest:
        best = max(
            nearest,
            key=lambda place: weight * relevance[place] - (1 - weight) * nearest[place],
        )
        del nearest[best]
        chosen.append(best)
        similarity = dict.fromkeys(nearest, 0.0)
        for term, value in vectors[best].items():
            holders = left[term]
            del holders[best]
            for place, other in holders.items():
                similarity[place] += value * other
        for place, known in nearest.items():
            nearest[place] = max(known, similarity[place])
    return chosen


def _unit(text: str) -> dict[str, float]:
    """Term counts as a vector of length 1; empty for a text without a word."""
    counts = Counter(words(text))
    length = sqrt(sum(count * count for count in counts.values()))
    return {term: count / length for term, count in counts.items()}
