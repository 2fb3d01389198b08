"""Outcomes of windows whose documents are scored one by one."""

from __future__ import annotations

from batchrank.values import Permutation, Status, Window


def scored(window: Window, scores: tuple[float, ...]) -> Permutation:
    """Each document has its score, in the order shown."""
    return Permutation(window.shown, len(window.shown), Status.OK, (), scores)


def unusable(window: Window, reason: str) -> Permutation:
    """No document has a score; `reason` is a short stable word."""
    return Permutation(window.prior, 0, Status.FALLBACK, (reason,))
