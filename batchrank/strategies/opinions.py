"""Weighs what a model said of the same documents in different windows against each other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from batchrank.values import Ranking

_DOUBT = 0.5
"""How much of a place one place of the first stage counts, per share of contradicted pairs."""


def contradiction(opinions: Sequence[Ranking], order: Ranking) -> float:
    """The share of all pairs within `opinions` that `order` has the other way round, 0 to 1.

    An opinion is an order of some of the documents of `order`; without any pair it is 0.
    """
    place = {docid: position for position, docid in enumerate(order)}
    inverted = [place[a] > place[b] for opinion in opinions for a, b in combinations(opinion, 2)]
    return sum(inverted) / len(inverted) if inverted else 0.0


def reconciled(order: Ranking, opinions: Sequence[Ranking], first_stage: Ranking) -> Ranking:
    """Move `order` towards earlier `opinions`, disjoint parts of it, where they contradict it.

    A document of an opinion gets the mean of its place in `order` and of the place it would have if
    the same places were dealt out in the opinion's order. The first stage, which holds the same
    documents as `order`, counts in as far as the model contradicts itself. So a consistent model's
    order stays exactly as it is.
    """
    place = {docid: float(position) for position, docid in enumerate(order)}
    mixed = dict(place)
    for opinion in opinions:
        due = sorted(place[docid] for docid in opinion)
        for docid, position in zip(opinion, due, strict=True):
            mixed[docid] = (place[docid] + position) / 2
    doubt = _DOUBT * contradiction(opinions, order)
    for position, docid in enumerate(first_stage):
        mixed[docid] += doubt * position
    return tuple(sorted(order, key=mixed.__getitem__))
