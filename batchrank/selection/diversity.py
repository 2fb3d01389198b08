"""Maximal marginal relevance: each next document is good and unlike those above it.

Carbonell and Goldstein 1998, "The Use of MMR, Diversity-Based Reranking".
"""

from __future__ import annotations

from collections.abc import Sequence

from batchrank.selection.similarity import Similarity


def diversified(order: Sequence[int], similarity: Similarity, weight: float) -> list[int]:
    """Reorder `order` by MMR with lambda `weight`; ties stay in its order.

    Relevance falls evenly with the rank, from 1 to 1/n.
    """
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
        for place, value in similarity(best, nearest).items():
            nearest[place] = max(nearest[place], value)
    return chosen
