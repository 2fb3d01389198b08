"""Borda: what a fusion of rankings must do whatever they are."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from batchrank.fusion import borda
from batchrank.values import Ranking
from tests.strategies.driving import docids


@st.composite
def rankings(draw: st.DrawFn) -> list[Ranking]:
    """One to five permutations of the same docids."""
    first_stage = docids(draw(st.integers(0, 12)))
    return draw(st.lists(st.permutations(first_stage).map(tuple), min_size=1, max_size=5))


@settings(deadline=None)
@given(rankings())
def test_sums_of_ranks_decide_and_ties_keep_the_prior(given_rankings: list[Ranking]) -> None:
    prior = tuple(sorted(given_rankings[0]))

    fused = borda(given_rankings, prior)

    keys = [
        (sum(ranking.index(docid) for ranking in given_rankings), prior.index(docid))
        for docid in fused
    ]
    if len(given_rankings) > 1:
        assert keys == sorted(keys)
    assert sorted(fused) == sorted(prior)


@settings(deadline=None)
@given(rankings(), st.integers(0, 99))
def test_the_order_of_the_rankings_says_nothing(given_rankings: list[Ranking], seed: int) -> None:
    prior = tuple(sorted(given_rankings[0]))
    mixed = list(given_rankings)
    Random(seed).shuffle(mixed)

    assert borda(mixed, prior) == borda(given_rankings, prior)


@settings(deadline=None)
@given(rankings(), st.integers(1, 4))
def test_what_all_agree_on_stands(given_rankings: list[Ranking], times: int) -> None:
    first = given_rankings[0]

    assert borda([first] * times, tuple(sorted(first))) == first


@settings(deadline=None)
@given(rankings())
def test_a_document_that_all_prefer_comes_before_the_other(given_rankings: list[Ranking]) -> None:
    prior = tuple(sorted(given_rankings[0]))
    place = {docid: rank for rank, docid in enumerate(borda(given_rankings, prior))}

    for one in prior:
        for other in prior:
            if all(r.index(one) < r.index(other) for r in given_rankings):
                assert place[one] < place[other]


def test_two_opposite_rankings_leave_the_prior() -> None:
    prior = ("c", "a", "b")

    assert borda([("a", "b", "c"), ("c", "b", "a")], prior) == prior
