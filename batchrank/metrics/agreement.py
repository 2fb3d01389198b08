"""Says how much two rankings of one query agree, without judgements."""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass

from batchrank.values import Ranking

PERSISTENCE = 0.9
"""RBO's p: 86% of its weight lies on the first ten ranks (Webber et al. 2010, equation 21)."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Each is 1 for equal rankings; `tau` is None with fewer than two documents in both."""

    overlap: float
    tau: float | None
    rbo: float


def agreement(first: Ranking, second: Ranking, cutoff: int) -> Agreement:
    """Compare two rankings, at least one of them not empty; `overlap` is taken at `cutoff`."""
    return Agreement(overlap(first, second, cutoff), kendall(first, second), rbo(first, second))


def overlap(first: Ranking, second: Ranking, cutoff: int) -> float:
    """The share of the best `cutoff` that both have, in any order.

    Rankings shorter than that are compared as far as the longer goes.
    """
    depth = min(cutoff, max(len(first), len(second)))
    return len(set(first[:depth]) & set(second[:depth])) / depth


def kendall(first: Ranking, second: Ranking) -> float | None:
    """Kendall's tau over the documents in both: agreeing minus disagreeing pairs, by all pairs."""
    place = {docid: rank for rank, docid in enumerate(second)}
    seen: list[int] = []
    inversions = 0
    for docid in first:
        if (rank := place.get(docid)) is not None:
            at = bisect(seen, rank)
            inversions += len(seen) - at
            seen.insert(at, rank)
    pairs = len(seen) * (len(seen) - 1) // 2
    return 1 - 2 * inversions / pairs if pairs else None


def rbo(first: Ranking, second: Ranking, p: float = PERSISTENCE) -> float:
    """Rank-biased overlap, extrapolated (Webber, Moffat and Zobel 2010, equation 32).

    With X_d the documents that both have down to rank d, s and l the lengths of the shorter and
    the longer ranking:

        (1-p)/p · (Σ_{d=1..l} X_d/d · p^d + Σ_{d=s+1..l} X_s·(d-s)/(s·d) · p^d)
        + ((X_l - X_s)/l + X_s/s) · p^l

    so that the top weighs most and unseen ranks are taken to agree as the seen ones do.
    """
    shorter, longer = sorted((first, second), key=len)
    if not shorter:
        return 0.0
    seen: tuple[set[str], set[str]] = (set(), set())
    common = common_short = 0
    total = 0.0
    weight = 1.0
    for depth, docid in enumerate(longer, 1):
        weight *= p
        seen[1].add(docid)
        common += docid in seen[0]
        if depth <= len(shorter):
            other = shorter[depth - 1]
            seen[0].add(other)
            common += other in seen[1]
            common_short = common
        total += common / depth * weight
        past = depth - len(shorter)
        if past > 0:
            total += common_short * past / (len(shorter) * depth) * weight
    tail = (common - common_short) / len(longer) + common_short / len(shorter)
    return (1 - p) / p * total + tail * weight
