"""Striped segments ranked at the same time, then one merge of their winners.

Depth 2 whatever the length (one more where the winners don't fit one window), each document in
1.2 prompts on average where sliding windows need 1.8. Windows are shown in first-stage order, which
models lean on, whatever is believed of them by then. With a perfect judge it promises its top m, m
being the winners a segment sends, and no more than `top`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from batchrank.fusion import borda
from batchrank.strategies.base import Plan, Round, Strategy
from batchrank.strategies.opinions import contradiction, reconciled
from batchrank.strategies.orders import Order
from batchrank.values import Permutation, Ranking, Window

_TOLERATED = 0.02
"""The share of contradicted pairs up to which orders of a merge are taken to agree."""


def segmented(
    window_size: int,
    winners: int | None,
    top: int,
    merge_orders: Sequence[Order],
    agree_top: int | None = None,
) -> Strategy:
    """Make the strategy.

    `winners` documents of a segment go to the merge, None for as many as fill it; `top` is how many
    the merge must name. The merge window is presented once in each of `merge_orders`, all in one
    round; with `agree_top` one after the other, and no more once what the model has said so far of
    the first `agree_top` agrees.
    """

    def plan(first_stage: Ranking) -> Plan:
        rank = {docid: position for position, docid in enumerate(first_stage)}
        pool = first_stage
        losers: Ranking = ()
        opinions: list[Ranking] = []
        while len(pool) > window_size:
            count = -(-len(pool) // window_size)
            # Dealt round-robin, so that each segment holds its share of the likely best.
            segments = [pool[start::count] for start in range(count)]
            m = winners_of(window_size, count, winners)
            answers = yield tuple(Window(s, _by(rank, s), min(m, len(s))) for s in segments)
            # What an answer does not name is no opinion of the model.
            opinions = [answer.order[: min(m, answer.named)] for answer in answers if answer.named]
            places: list[list[str]] = [[] for _ in range(len(segments[0]))]
            for answer in answers:
                for place, docid in enumerate(answer.order):
                    places[place].append(docid)
            for docids in places:
                docids.sort(key=rank.__getitem__)
            pool = tuple([docid for docids in places[:m] for docid in docids])
            losers = tuple([docid for docids in places[m:] for docid in docids]) + losers
        if len(pool) > 1:
            shown = _by(rank, pool)
            windows = [Window(pool, order(shown), min(len(pool), top)) for order in merge_orders]
            if agree_top is None:
                answers = yield tuple(windows)
                merged = [answer.order for answer in answers]
            else:
                merged = yield from _until_agreed(windows, opinions, agree_top)
            pool = reconciled(borda(merged, pool), opinions, shown)
        return pool + losers

    return plan


def winners_of(window_size: int, segments: int, winners: int | None) -> int:
    """How many of each segment go on: enough to fill one merge window, at most half a segment."""
    wanted = winners if winners is not None else max(2, window_size // segments)
    return max(1, min(wanted, window_size // 2))


def _by(rank: dict[str, int], docids: Ranking) -> Ranking:
    return tuple(sorted(docids, key=rank.__getitem__))


def _until_agreed(
    windows: Sequence[Window], opinions: Sequence[Ranking], top: int
) -> Generator[Round, Sequence[Permutation], list[Ranking]]:
    """Ask windows one by one until the orders so far, and `opinions`, agree in the `top`."""
    merged: list[Ranking] = []
    for window in windows:
        (answer,) = yield (window,)
        merged.append(answer.order)
        order = borda(merged, window.prior)
        best = frozenset(order[:top])
        said = [tuple(d for d in voice if d in best) for voice in (*opinions, *merged)]
        if len(said) > 1 and contradiction(said, order) <= _TOLERATED:
            break
    return merged
