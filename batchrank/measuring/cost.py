"""Says what a night cost and whether the gain is worth it."""

from __future__ import annotations

from dataclasses import dataclass

from batchrank.errors import UsageError
from batchrank.formats.wording import money
from batchrank.measuring.nights import Spending
from batchrank.metrics.evaluation import NDCG
from batchrank.metrics.significance import Difference
from batchrank.spec.jobspec import Cost

_SURE = 0.05
_POINT = 0.01


@dataclass(frozen=True, slots=True)
class Worth:
    """Prices in the currency of `gpu_hour`; `per_point` (+0.01 nDCG@10) is None without a gain."""

    night: float
    per_1000_queries: float
    per_point: float | None
    sentence: str


def worth(cost: Cost, spending: Spending, queries: int, gain: Difference | None) -> Worth:
    """Weigh a run over `queries` against its `gain` in nDCG@10, None where that is not known.

    The price is that of the time on the clock, on all GPUs, idle or not. Raises UsageError where
    the run has not ended or ranked nothing.
    """
    if spending.seconds is None or not queries:
        raise UsageError("what a run cost is known once it has ended, with one query at least")
    night = spending.seconds / 3600 * cost.gpu_hour * cost.gpus
    per_1000 = night / queries * 1000
    per_point = night / (gain.change / _POINT) if gain is not None and gain.change > 0 else None
    return Worth(night, per_1000, per_point, _sentence(per_1000, per_point, gain))


def _sentence(per_1000: float, per_point: float | None, gain: Difference | None) -> str:
    price = f"{money(per_1000)} per 1,000 queries"
    if gain is None:
        return f"Is it worth it? {price}; without a first stage beside it, the gain is not known."
    figures = f"{gain.change:+.4f} {NDCG} (95% interval {gain.low:+.4f} to {gain.high:+.4f})"
    if per_point is None:
        return f"Is it worth it? No: {figures} for {price}."
    if gain.p > _SURE:
        return f"Is it worth it? Unclear: {figures} may be chance (p {gain.p:.4f}), for {price}."
    return (
        f"Is it worth it? {figures} for {price}: {money(per_point)} a night "
        f"for each +{_POINT} {NDCG}."
    )
