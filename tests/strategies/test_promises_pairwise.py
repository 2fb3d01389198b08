"""Pairs in both orders: conflicts, and passes that run at the same time."""

from __future__ import annotations

import pytest

from batchrank.strategies.pairwise import pairwise
from batchrank.values import Permutation, Status, Window
from tests.strategies.driving import docids, drove, perfect, shuffled


@pytest.mark.parametrize("place", [0, -1])
def test_a_judge_that_goes_by_position_changes_nothing(place: int) -> None:
    def judge(window: Window) -> Permutation:
        best = window.shown[place]
        return Permutation((best, window.shown[place - 1]), 2, Status.OK)

    ranking, _ = drove(pairwise(5), docids(12), judge)

    assert ranking == docids(12)


def test_every_pair_is_asked_in_both_orders() -> None:
    _, rounds = drove(pairwise(3), docids(9), perfect(shuffled(9, 4)))

    for windows in rounds:
        for one, other in zip(windows[::2], windows[1::2], strict=True):
            assert one.prior == other.prior == one.shown == other.shown[::-1]


def test_passes_follow_each_other_without_touching() -> None:
    _, rounds = drove(pairwise(10), docids(30), perfect(shuffled(30, 5)))

    # Pass p has 29 − p pairs; the last of ten begins 18 rounds after the first and takes 20.
    assert sum(map(len, rounds)) == 2 * sum(29 - p for p in range(10))
    assert len(rounds) == 38
    for windows in rounds:
        seen = [docid for window in windows[::2] for docid in window.prior]
        assert len(set(seen)) == len(seen)
