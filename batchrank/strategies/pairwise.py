"""Pairs, each asked in both orders (Qin et al. 2024, pairwise ranking prompting, sliding passes).

k bubble passes go from the back of the list to its front. Two neighbours change places only where
both presentations say so, so a model that answers by position changes nothing. A pass follows two
places behind the one before, which changes no outcome: about n + k rounds, 2·k·n windows of two
documents. With a perfect judge it promises its top k.
"""

from __future__ import annotations

from batchrank.strategies.base import Plan, Strategy
from batchrank.values import Ranking, Window


def pairwise(k: int) -> Strategy:
    """Make the strategy; `k` is the number of passes."""

    def plan(first_stage: Ranking) -> Plan:
        order = list(first_stage)
        last = len(order) - 2
        passes = range(min(k, len(order) - 1))
        for step in range(last + len(passes)):
            # In each step pass p compares what stands at these places with its successor.
            places = [place for p in passes if p <= (place := last - step + 2 * p) <= last]
            pairs = [(order[place], order[place + 1]) for place in places]
            answers = yield tuple(
                Window(pair, shown, 1) for pair in pairs for shown in (pair, pair[::-1])
            )
            for number, (place, pair) in enumerate(zip(places, pairs, strict=True)):
                both = answers[2 * number : 2 * number + 2]
                if all(answer.order[0] == pair[1] for answer in both):
                    order[place : place + 2] = pair[::-1]
        return tuple(order)

    return plan
