"""A window that slides from the back of the list to its front (Sun et al. 2023, RankGPT).

Each window carries its best `window_size − stride` documents into the next. Serial within a query:
about n / stride calls that wait for each other. With a perfect judge it promises its top
window_size − stride.
"""

from __future__ import annotations

from batchrank.strategies.base import Plan, Strategy
from batchrank.values import Ranking, Window


def sliding(window_size: int, stride: int) -> Strategy:
    """Make the strategy; the last window always starts at the very first document."""

    def plan(first_stage: Ranking) -> Plan:
        order = first_stage
        end = len(order)
        while end > 1:
            start = max(0, end - window_size)
            seen = order[start:end]
            # What is carried on is wanted; nothing follows the last window, so all of it is.
            wants = len(seen) if start == 0 else min(len(seen), window_size - stride)
            (answer,) = yield (Window(seen, seen, wants),)
            order = order[:start] + answer.order + order[end:]
            end = end - stride if start > 0 else 0
        return order

    return plan
