"""Sliding windows: from back to front, nothing skipped, the best carried on."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchrank.strategies.sliding import sliding
from tests.strategies.driving import docids, drove, noisy, perfect, shuffled, sizes, useless


def spans(count: int, window_size: int, stride: int) -> list[tuple[int, int]]:
    """Where each window begins and ends, for a judge that moves nothing."""
    _, rounds = drove(sliding(window_size, stride), docids(count), useless)
    starts = [int(window.prior[0][1:]) for (window,) in rounds]
    return [(s, s + len(w.prior)) for s, (w,) in zip(starts, rounds, strict=True)]


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, []),
        (1, []),
        (2, [(0, 2)]),
        (20, [(0, 20)]),
        (21, [(1, 21), (0, 11)]),
        (23, [(3, 23), (0, 13)]),
        (30, [(10, 30), (0, 20)]),
        (40, [(20, 40), (10, 30), (0, 20)]),
    ],
)
def test_windows_slide_to_the_very_first_document(
    count: int, expected: list[tuple[int, int]]
) -> None:
    assert spans(count, 20, 10) == expected


def test_cost_of_one_hundred_candidates() -> None:
    found = spans(100, 20, 10)

    assert len(found) == 9
    assert sum(end - start for start, end in found) == 180


def test_only_the_last_window_is_wanted_whole() -> None:
    _, rounds = drove(sliding(20, 15), docids(60), useless)

    assert [window.wants for (window,) in rounds] == [5, 5, 5, 15]
    assert [len(window.shown) for (window,) in rounds] == [20, 20, 20, 15]


@settings(deadline=None, max_examples=60)
@given(sizes(), st.data())
def test_any_answers_give_a_permutation_from_legal_windows(
    size: tuple[int, int], data: st.DataObject
) -> None:
    window_size, count = size
    stride = data.draw(st.integers(max(1, window_size // 3), window_size - 1), "stride")
    first_stage = docids(count)

    ranking, rounds = drove(sliding(window_size, stride), first_stage, noisy(count))

    assert sorted(ranking) == sorted(first_stage)
    assert {docid for (window,) in rounds for docid in window.shown} == (
        set(first_stage) if count > 1 else set()
    )
    for (window,) in rounds:
        assert window.shown == window.prior
        assert len(set(window.prior)) == len(window.prior) <= window_size
        assert 1 <= window.wants <= len(window.prior)


@settings(deadline=None, max_examples=60)
@given(sizes(), st.data())
def test_a_perfect_judge_gets_what_windows_carry_on(
    size: tuple[int, int], data: st.DataObject
) -> None:
    window_size, count = size
    stride = data.draw(st.integers(max(1, window_size // 3), window_size - 1), "stride")
    truth = shuffled(count, data.draw(st.integers(0, 99), "seed"))

    ranking, _ = drove(sliding(window_size, stride), docids(count), perfect(truth))

    promised = window_size - stride
    assert ranking[:promised] == truth[:promised]


@given(sizes())
@settings(deadline=None, max_examples=30)
def test_useless_answers_leave_the_first_stage(size: tuple[int, int]) -> None:
    window_size, count = size
    first_stage = docids(count)

    ranking, _ = drove(sliding(window_size, max(1, window_size // 2)), first_stage, useless)

    assert ranking == first_stage
