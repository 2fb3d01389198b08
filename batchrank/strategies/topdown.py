"""Top-down partitioning (Parry, MacAvaney and Ganguly 2024, TDPart).

The k-th best of the first window is the pivot. All other documents are compared with it in windows
of one round, and only those above it go on; where there are none the first window was right. The
paper shows the pivot first; here it stands in the middle, since models favour what they see first.
With a perfect judge it promises its top k. Most lists take three or four rounds.
"""

from __future__ import annotations

from batchrank.strategies.base import Plan, Strategy
from batchrank.values import Ranking, Window


def topdown(window_size: int, k: int) -> Strategy:
    """Make the strategy; `k` is at least 1 and best half a window, at most all of it."""

    def plan(first_stage: Ranking) -> Plan:
        rank = {docid: position for position, docid in enumerate(first_stage)}
        pool = first_stage
        losers: Ranking = ()
        while len(pool) > window_size:
            head = pool[:window_size]
            (answer,) = yield (Window(head, head, k),)
            pivot = answer.order[k - 1]
            above = {docid: place for place, docid in enumerate(answer.order[: k - 1])}
            below = answer.order[k:]
            answers = yield tuple(
                _around(pivot, pool[start : start + window_size - 1], k)
                for start in range(window_size, len(pool), window_size - 1)
            )
            for answer in answers:
                # Of one window no more than k can be among the k best of all.
                beaten_by = min(answer.order.index(pivot), k)
                above.update((docid, place) for place, docid in enumerate(answer.order[:beaten_by]))
                below += tuple(docid for docid in answer.order[beaten_by:] if docid != pivot)
            pool = tuple(sorted(above, key=lambda docid: (above[docid], rank[docid])))
            losers = (pivot, *below, *losers)
            if len(pool) < k:
                return pool + losers
        if len(pool) > 1:
            shown = tuple(sorted(pool, key=rank.__getitem__))
            (answer,) = yield (Window(pool, shown, min(k, len(pool))),)
            pool = answer.order
        return pool + losers

    return plan


def _around(pivot: str, part: Ranking, k: int) -> Window:
    """A window of `part` and the pivot, which nothing beats unless the answer says so."""
    middle = len(part) // 2
    return Window(
        prior=(pivot, *part),
        shown=(*part[:middle], pivot, *part[middle:]),
        wants=min(k, len(part) + 1),
    )
