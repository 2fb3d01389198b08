"""Tournaments with points (Chen et al. 2024, TourRank).

In a tournament documents are dealt to groups, the best of each go on, and so on until one window
holds all that are left and orders them. A document gets a point for each halving of the field that
it survives, its place in the final counted in the same way: log2(documents / place). Several
tournaments, dealt differently, run in step; their points are summed, ties to the first stage. With
a perfect judge it promises its top m, m being the fewest that a group sends on, and no more than
`top`.

The paper lets half a group go on and shuffles what a prompt shows. Here fewer may go on, which
takes two rounds in place of four, and documents are shown in first-stage order, which models lean
on.
"""

from __future__ import annotations

import math
import random
from itertools import islice

from batchrank.strategies.base import Plan, Strategy
from batchrank.strategies.segmented import winners_of
from batchrank.values import Ranking, Window


def tournament(
    window_size: int, tournaments: int, winners: int | None, top: int, seed: int
) -> Strategy:
    """Make the strategy.

    `winners` of a group go on, None for as many as fill one window; `top` is how many a final must
    name; what is dealt depends on `seed` and the number of documents alone.
    """

    def plan(first_stage: Ranking) -> Plan:
        rank = {docid: position for position, docid in enumerate(first_stage)}
        points = dict.fromkeys(first_stage, 0.0)

        def shown(docids: Ranking) -> Ranking:
            return tuple(sorted(docids, key=rank.__getitem__))

        dealers = [random.Random(f"{seed} {n}") for n in range(tournaments)]  # noqa: S311 - no secret
        pools = [first_stage] * tournaments  # in every round all are of one length
        while (size := len(pools[0])) > window_size:
            count = math.ceil(size / window_size)
            m = winners_of(window_size, count, winners)
            dealt = [
                _deal(pool, count, dealer) for pool, dealer in zip(pools, dealers, strict=True)
            ]
            answers = yield tuple(
                Window(group, shown(group), min(m, len(group)))
                for groups in dealt
                for group in groups
            )
            outcomes = iter(answers)
            for number in range(tournaments):
                survivors = sorted(
                    (place, rank[docid], docid)
                    for answer in islice(outcomes, count)
                    for place, docid in enumerate(answer.order[:m])
                )
                pools[number] = tuple(docid for _, _, docid in survivors)
                for docid in pools[number]:
                    points[docid] += math.log2(size / len(survivors))
        if size > 1:
            answers = yield tuple(Window(pool, shown(pool), min(size, top)) for pool in pools)
            for answer in answers:
                for place, docid in enumerate(answer.order, start=1):
                    points[docid] += math.log2(size / place)
        return tuple(sorted(first_stage, key=points.__getitem__, reverse=True))

    return plan


def _deal(pool: Ranking, count: int, dealer: random.Random) -> list[Ranking]:
    """Deal to `count` groups: each takes one of every `count` neighbours, so all are as strong."""
    groups: list[list[str]] = [[] for _ in range(count)]
    for start in range(0, len(pool), count):
        neighbours = pool[start : start + count]
        for group, docid in zip(dealer.sample(groups, len(neighbours)), neighbours, strict=True):
            group.append(docid)
    return [tuple(group) for group in groups]
