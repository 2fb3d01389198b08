"""A score for each document, then a sort (Nogueira et al. 2020; Sachan et al. 2022, UPR).

All windows are independent: depth 1. With a perfect judge it promises the whole order.
"""

from __future__ import annotations

from batchrank.strategies.base import Plan, Strategy
from batchrank.values import Ranking, Window


def pointwise(batch: int) -> Strategy:
    """Make the strategy; `batch` documents are scored in one window.

    Ties keep the first stage's order, and a document without a score keeps its very place: that no
    answer came says nothing against it.
    """

    def plan(first_stage: Ranking) -> Plan:
        if len(first_stage) < 2:
            return first_stage
        batches = [
            first_stage[start : start + batch] for start in range(0, len(first_stage), batch)
        ]
        answers = yield tuple(Window(docids, docids, len(docids)) for docids in batches)
        scores = {
            docid: score
            for answer in answers
            for docid, score in zip(answer.order[: answer.named], answer.scores or (), strict=False)
        }
        scored = [docid for docid in first_stage if docid in scores]
        ranked = iter(sorted(scored, key=scores.__getitem__, reverse=True))
        return tuple(next(ranked) if docid in scores else docid for docid in first_stage)

    return plan
