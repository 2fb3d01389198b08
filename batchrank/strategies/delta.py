"""Tonight's order from an earlier one: only what changed is asked, among the best of the earlier.

A pool of the earlier best and of all documents that are new since is ranked as the job ranks any
list: where it fits one window that is one call. What the model said of the earlier best counts as
an opinion beside what it says now. All others keep the earlier order below and are not looked at
again: that is the price, and why rankings must not rest on earlier ones for ever.
"""

from __future__ import annotations

from dataclasses import replace

from batchrank.strategies.base import Plan, Strategy
from batchrank.strategies.opinions import reconciled
from batchrank.values import Lineage, Ranking


def delta(strategy: Strategy, window_size: int, earlier: Ranking) -> Strategy:
    """Make the strategy: `earlier` holds the documents that are as they were, in their last order.

    All others of the first stage are new. The pool is one window of `window_size`; new documents
    that fill more than half of it get half a window of the earlier best beside them and take as
    many windows as `strategy` does. Where nothing is new, nothing is asked.
    """

    def plan(first_stage: Ranking) -> Plan:
        known = frozenset(earlier)
        new = [docid for docid in first_stage if docid not in known]
        if not new:
            return earlier
        best = earlier[: max(window_size - len(new), window_size // 2)]
        rank = {docid: position for position, docid in enumerate(first_stage)}
        believed = list(best)
        for docid in new:
            believed.insert(rank[docid], docid)
        pool = tuple(sorted(believed, key=rank.__getitem__))
        merged = yield from _believing(strategy(pool), tuple(believed))
        return reconciled(merged, (best,), pool) + earlier[len(best) :]

    return plan


def building_on(
    lineage: Lineage | None, strategy: Strategy, window_size: int, docids: Ranking
) -> Strategy:
    """How `docids`, the candidates in first-stage order, are ranked: as ever, or from `lineage`."""
    if lineage is None or not lineage.run:
        return strategy
    return delta(strategy, window_size, tuple(docids[place] for place in lineage.earlier))


def _believing(plan: Plan, order: Ranking) -> Plan:
    """Run `plan` with `order` as what its first windows fall back to."""
    place = {docid: position for position, docid in enumerate(order)}
    try:
        windows = tuple(
            replace(window, prior=tuple(sorted(window.prior, key=place.__getitem__)))
            for window in next(plan)
        )
        while True:
            windows = plan.send((yield windows))
    except StopIteration as end:
        ranking: Ranking = end.value
        return ranking
