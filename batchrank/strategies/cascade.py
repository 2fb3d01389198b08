"""Stages, each of which reranks the best of the one before (Wang, Lin and Metzler 2011).

With a perfect judge it promises what its last stage promises of the documents that reach it: with
`depths` that never rise above what an earlier stage promises, the last stage's promise itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from batchrank.strategies.base import Asking, Plan, Round, Strategy, through
from batchrank.values import Ranking


def cascade(stages: Sequence[tuple[Strategy, int | None]]) -> Strategy:
    """Make the strategy from (strategy, depth) pairs.

    A stage reranks the first `depth` documents of the order so far, None for all; the rest keep
    their order below. Its windows carry its number, from 0.
    """

    def plan(first_stage: Ranking) -> Plan:
        order = first_stage
        for number, (strategy, depth) in enumerate(stages):
            head = yield from _numbered(strategy(order[:depth]), number)
            order = head + order[len(head) :]
        return order

    return plan


def _numbered(plan: Plan, stage: int) -> Plan:
    def ask(windows: Round) -> Asking:
        return (yield tuple(replace(window, stage=stage) for window in windows))

    return through(plan, ask)
