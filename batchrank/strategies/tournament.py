"""Tournaments with points (Chen et al. 2024, TourRank).

A tournament deals its documents to groups, of which the better half goes on, until one window holds
all that are left and orders them. Each halving that a document survives is a point; a place in
the final counts as the halvings it stands for, log2(finalists / place). Several tournaments, dealt
and shown differently, run in step, and points are summed, ties to the first stage. With a perfect
judge it promises its top m, m being half the smallest group that had to be halved.
"""

from __future__ import annotations

import math
import random
from itertools import islice

from batchrank.strategies.base import Plan, Strategy
from batchrank.strategies.orders import shuffle
from batchrank.values import Ranking, Window


def tournament(window_size: int, tournaments: int, top: int, seed: int) -> Strategy:
    """Make the strategy; `top` is how many a final must name."""

    def plan(first_stage: Ranking) -> Plan:
        rank = {docid: position for position, docid in enumerate(first_stage)}
        points = dict.fromkeys(first_stage, 0.0)
        dealers = [random.Random(f"{seed} {n}") for n in range(tournaments)]  # noqa: S311 - no secret
        orders = [shuffle(seed + number) for number in range(tournaments)]
        pools = [first_stage] * tournaments  # all of one length in every round
        while len(pools[0]) > window_size:
            count = math.ceil(len(pools[0]) / window_size)
            half = math.ceil(math.ceil(len(pools[0]) / count) / 2)
            dealt = [
                _deal(pool, count, dealer) for pool, dealer in zip(pools, dealers, strict=True)
            ]
            answers = yield tuple(
                Window(group, order(group), min(half, len(group)))
                for groups, order in zip(dealt, orders, strict=True)
                for group in groups
            )
            outcomes = iter(answers)
            for number in range(tournaments):
                survivors = sorted(
                    (place, rank[docid], docid)
                    for answer in islice(outcomes, count)
                    for place, docid in enumerate(answer.order[:half])
                )
                pools[number] = tuple(docid for _, _, docid in survivors)
                for docid in pools[number]:
                    points[docid] += 1
        if len(first_stage) > 1:
            answers = yield tuple(
                Window(pool, order(pool), min(len(pool), top))
                for pool, order in zip(pools, orders, strict=True)
            )
            for answer in answers:
                for place, docid in enumerate(answer.order, start=1):
                    points[docid] += math.log2(len(answer.order) / place)
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
