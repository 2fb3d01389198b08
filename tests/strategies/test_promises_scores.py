"""Pointwise scores: the whole order, ties, and documents that got none."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchrank.strategies.pointwise import pointwise
from batchrank.values import Permutation, Status, Window
from tests.strategies.driving import counts, docids, drove, shuffled, useless


def scoring(scores: Mapping[str, float]) -> Callable[[Window], Permutation]:
    """Scores the documents it knows and names no other."""

    def judge(window: Window) -> Permutation:
        known = sorted((d for d in window.prior if d in scores), key=lambda d: -scores[d])
        rest = tuple(d for d in window.prior if d not in scores)
        values = tuple(scores[d] for d in known)
        return Permutation((*known, *rest), len(known), Status.OK, scores=values)

    return judge


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 40), counts(20), st.integers(0, 99))
def test_a_perfect_judge_gets_all_right(batch: int, count: int, seed: int) -> None:
    truth = shuffled(count, seed)
    scores = {docid: -float(place) for place, docid in enumerate(truth)}

    ranking, rounds = drove(pointwise(batch), docids(count), scoring(scores))

    assert ranking == truth
    assert len(rounds) == (1 if count > 1 else 0)
    assert all(1 <= w.wants == len(w.prior) <= batch for windows in rounds for w in windows)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 7), st.dictionaries(st.sampled_from(docids(15)), st.integers(0, 3)))
def test_unscored_documents_keep_their_place_and_ties_their_order(
    batch: int, scores: dict[str, int]
) -> None:
    ranking, _ = drove(pointwise(batch), docids(15), scoring(scores))

    assert sorted(ranking) == sorted(docids(15))
    for before, after in zip(docids(15), ranking, strict=True):
        assert (before in scores) == (after in scores)
        assert before in scores or before == after
    scored = [docid for docid in ranking if docid in scores]
    assert scored == sorted(scored, key=lambda d: (-scores[d], int(d[1:])))


@pytest.mark.parametrize("count", [0, 1, 2, 401])
def test_unusable_answers_leave_the_first_stage(count: int) -> None:
    ranking, _ = drove(pointwise(3), docids(count), useless)

    assert ranking == docids(count)
