"""Puts a window's documents in the order of a reading, the silent rest in prior order."""

from __future__ import annotations

from batchrank.answers.reading import Reading
from batchrank.values import Permutation, Status, Window


def permutation(window: Window, reading: Reading) -> Permutation:
    """Place what `reading` names first and everything else as `window.prior` has it.

    Identifier i is `window.shown[i - 1]`. A reading that names nothing keeps the prior order.
    """
    named = tuple([window.shown[identifier - 1] for identifier in reading.named])
    taken = frozenset(named)
    rest = tuple([docid for docid in window.prior if docid not in taken])
    return Permutation(named + rest, len(named), reading.status, reading.notes)


def unanswered(window: Window, reason: str) -> Permutation:
    """Keep the prior order of a window that no answer came for, and say why none came."""
    return Permutation(window.prior, 0, Status.ERROR, (reason,))
