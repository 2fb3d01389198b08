"""One window over all documents, or over as many of the first as one prompt may hold.

The full ranking of Liu et al. 2024 ("Sliding Windows Are Not the End"): one call, depth 1, for
models whose context holds the whole list. With a perfect judge it promises the best `top` of the
documents in its window.
"""

from __future__ import annotations

from batchrank.strategies.base import Plan, Strategy
from batchrank.values import Ranking, Window


def single(window_size: int | None, top: int) -> Strategy:
    """Make the strategy.

    The first `window_size` documents are ranked, None for all; what follows keeps its order below.
    `top` is how many the answer must name.
    """

    def plan(first_stage: Ranking) -> Plan:
        seen = first_stage[:window_size]
        if len(seen) < 2:
            return first_stage
        (answer,) = yield (Window(seen, seen, min(len(seen), top)),)
        return answer.order + first_stage[len(seen) :]

    return plan
