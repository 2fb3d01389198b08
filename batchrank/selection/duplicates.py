"""Finds near-duplicates by the shingles they share (Broder 1997, "On the resemblance…")."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from batchrank.selection.words import words

_WORDS = 3
"""Words of a shingle; a shorter text is one shingle."""

Shingles = frozenset[tuple[str, ...]]


def demoted(
    order: Sequence[int], texts: Sequence[str], least: float
) -> tuple[list[int], list[int]]:
    """Split `order`, places in `texts`, into what stays and the near-duplicates, both in order.

    A document is a near-duplicate if the Jaccard similarity of its shingles to those of a better
    one that stays is at least `least`; so one of a group of duplicates always stays. A text without
    a word is like no other.
    """
    stay: list[int] = []
    duplicates: list[int] = []
    sizes: dict[int, int] = {}
    holders: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for place in order:
        mine = shingles(texts[place])
        shared = Counter(other for shingle in mine for other in holders.get(shingle, ()))
        if any(
            count >= least * (len(mine) + sizes[other] - count) for other, count in shared.items()
        ):
            duplicates.append(place)
            continue
        stay.append(place)
        sizes[place] = len(mine)
        for shingle in mine:
            holders[shingle].append(place)
    return stay, duplicates


def shingles(text: str) -> Shingles:
    """All runs of three words of a text."""
    found = words(text)
    if not found:
        return frozenset()
    last = max(1, len(found) - _WORDS + 1)
    return frozenset(tuple(found[start : start + _WORDS]) for start in range(last))
