"""Paired tests, intervals, Holm's correction, and agreement without judgements."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from batchrank.metrics.agreement import agreement, kendall, overlap, rbo
from batchrank.metrics.significance import Test, holm, paired_difference

values = st.floats(0, 1, allow_nan=False)
rankings = st.permutations([f"d{n}" for n in range(12)]).flatmap(
    lambda order: st.integers(1, 12).map(lambda size: tuple(order[:size]))
)
tests = st.sampled_from(["randomisation", "t"])


@given(st.lists(st.tuples(values, values), min_size=1, max_size=40), tests)
def test_every_query_is_a_win_a_tie_or_a_loss(pairs: list[tuple[float, float]], test: Test) -> None:
    before, after = zip(*pairs, strict=True)
    found = paired_difference(before, after, test)
    assert found.wins + found.ties + found.losses == len(pairs)
    assert 0 <= found.p <= 1
    assert found.low - 1e-9 <= found.high
    back = paired_difference(after, before, test)
    assert (back.wins, back.losses) == (found.losses, found.wins)
    assert back.p == pytest.approx(found.p, abs=1e-12)


@given(st.lists(values, min_size=1, max_size=40), tests)
def test_a_run_does_not_differ_from_itself(scores: list[float], test: Test) -> None:
    found = paired_difference(scores, scores, test)
    assert (found.change, found.low, found.high, found.p) == (0, 0, 0, 1)
    assert (found.wins, found.ties, found.losses) == (0, len(scores), 0)


def test_the_randomisation_test_comes_close_to_all_sign_flips() -> None:
    differences = [0.31, 0.12, -0.05, 0.22, 0.18, -0.11, 0.09, 0.4, 0.02, -0.01]
    sums = [
        abs(sum(sign * value for sign, value in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=len(differences))
    ]
    exact = sum(total >= abs(sum(differences)) - 1e-12 for total in sums) / len(sums)
    found = paired_difference([0.0] * len(differences), differences)
    assert found.p == pytest.approx(exact, abs=0.005)


def test_the_t_test_is_students() -> None:
    before = [0.2, 0.5, 0.1, 0.9, 0.4, 0.3]
    after = [0.3, 0.5, 0.4, 0.8, 0.9, 0.35]
    expected = stats.ttest_rel(before, after).pvalue
    assert paired_difference(before, after, "t").p == pytest.approx(expected, abs=1e-12)


def test_the_t_test_of_one_query_shows_nothing_and_of_equal_gains_everything() -> None:
    assert paired_difference([0.0], [1.0], "t").p == 1
    assert paired_difference([0.0, 0.5], [0.25, 0.75], "t").p == 0


def test_the_interval_holds_the_change_and_is_the_same_each_time() -> None:
    after = [0.1 * (n % 7) for n in range(60)]
    found = paired_difference([0.2] * 60, after)
    assert found.low < found.change < found.high
    # The normal approximation is good at this size.
    half = 1.96 * stats.sem([value - 0.2 for value in after])
    assert found.high - found.low == pytest.approx(2 * half, rel=0.05)
    assert paired_difference([0.2] * 60, after) == found


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.6, 0.5]) == [1, 1]
    assert holm([]) == []


@given(st.lists(values, max_size=8))
def test_holm_raises_p_and_keeps_the_order(ps: list[float]) -> None:
    corrected = holm(ps)
    assert all(before <= after <= 1 for before, after in zip(ps, corrected, strict=True))
    for one, other in combinations(range(len(ps)), 2):
        if ps[one] < ps[other]:
            assert corrected[one] <= corrected[other]


@given(rankings, st.integers(1, 20))
def test_a_ranking_agrees_with_itself(ranking: tuple[str, ...], cutoff: int) -> None:
    found = agreement(ranking, ranking, cutoff)
    assert found.overlap == 1
    assert found.rbo == pytest.approx(1)
    assert found.tau == (1 if len(ranking) > 1 else None)


@given(rankings, rankings, st.integers(1, 20))
def test_agreement_has_no_direction(
    first: tuple[str, ...], second: tuple[str, ...], cutoff: int
) -> None:
    one, other = agreement(first, second, cutoff), agreement(second, first, cutoff)
    assert one.overlap == other.overlap
    assert one.rbo == pytest.approx(other.rbo)
    assert one.tau == other.tau or one.tau == pytest.approx(other.tau)
    assert -1e-9 <= one.rbo <= 1 + 1e-9


@given(rankings, rankings)
def test_tau_is_scipys_over_the_common_documents(
    first: tuple[str, ...], second: tuple[str, ...]
) -> None:
    common = [docid for docid in first if docid in second]
    found = kendall(first, second)
    if len(common) < 2:
        assert found is None
    else:
        places = [second.index(docid) for docid in common]
        assert found == pytest.approx(stats.kendalltau(range(len(places)), places).statistic)


def test_overlap_by_hand() -> None:
    assert overlap(tuple("abcd"), tuple("badx"), 2) == 1
    assert overlap(tuple("abcd"), tuple("badx"), 4) == 0.75
    assert overlap(("a",), tuple("abcd"), 4) == 0.25


def test_rbo_by_hand() -> None:
    # X_1 = 0, X_2 = 2: (1-p)/p · (0 + 1·p²) + 1·p²  with p = 0.5
    assert rbo(("a", "b"), ("b", "a"), p=0.5) == pytest.approx(0.5)
    # s = 1, l = 2, X_1 = X_2 = 1: (1-p)/p · (p + p²/2 + p²·1·1/(1·2)) + (0/2 + 1)·p²
    assert rbo(("a",), ("a", "b"), p=0.5) == pytest.approx(1)
    # s = 1, l = 2, X_1 = 0, X_2 = 1: (1-p)/p · p²/2 + (1/2 + 0)·p²
    assert rbo(("b",), ("a", "b"), p=0.5) == pytest.approx(0.25)
    assert rbo(("a",), ("b",)) == 0


def test_a_swap_at_the_top_costs_more_than_one_below() -> None:
    ranking = tuple("abcdefgh")
    assert rbo(ranking, tuple("bacdefgh")) < rbo(ranking, tuple("abcdefhg"))
