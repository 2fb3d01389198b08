"""Striped segments and their merge: what is dealt, wanted, promised and paid for."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchrank.strategies.base import Round
from batchrank.strategies.orders import Order, forward, reverse, shuffle
from batchrank.strategies.segmented import segmented, winners_of
from batchrank.values import Permutation, Ranking, Window
from tests.strategies.driving import docids, drove, noisy, perfect, shuffled, sizes, useless

ORDERS = st.lists(st.sampled_from((forward, reverse, shuffle(1), shuffle(2))), min_size=1).map(
    lambda orders: orders[:3]
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, int, int | None, int, list[Order]]:
    """Window size, candidates, winners, how many the merge must name, its presentations."""
    window_size, count = draw(sizes())
    winners = draw(st.none() | st.integers(1, window_size // 2))
    return window_size, count, winners, draw(st.integers(1, window_size)), draw(ORDERS)


def slots(rounds: Sequence[Round]) -> list[list[int]]:
    """The sizes of the windows of every round."""
    return [[len(window.shown) for window in windows] for windows in rounds]


@pytest.mark.parametrize(
    ("merge_orders", "calls", "documents"),
    [
        ([forward], 6, 120),
        ([forward, reverse], 7, 140),
        ([shuffle(1), shuffle(2), shuffle(3)], 8, 160),
    ],
)
def test_cost_of_one_hundred_candidates(
    merge_orders: list[Order], calls: int, documents: int
) -> None:
    _, rounds = drove(segmented(20, None, 20, merge_orders), docids(100), useless)

    sizes_of_rounds = slots(rounds)
    assert len(rounds) == 2
    assert sum(map(len, sizes_of_rounds)) == calls
    assert sum(map(sum, sizes_of_rounds)) == documents


def test_candidates_are_dealt_round_robin() -> None:
    _, (segments, (merge,)) = drove(segmented(4, None, 4, [forward]), docids(7), useless)

    assert [window.prior for window in segments] == [("d0", "d2", "d4", "d6"), ("d1", "d3", "d5")]
    assert [window.wants for window in segments] == [2, 2]
    # By place in the segment, then by first-stage rank.
    assert merge.prior == ("d0", "d1", "d2", "d3")


def test_the_merge_must_name_only_what_is_written() -> None:
    _, (_, (merge,)) = drove(segmented(20, None, 5, [forward]), docids(100), useless)
    _, ((only,),) = drove(segmented(20, None, 5, [forward]), docids(3), useless)

    assert (merge.wants, only.wants) == (5, 3)


def test_winners_that_do_not_fit_one_window_are_segmented_again() -> None:
    _, rounds = drove(segmented(20, 10, 20, [forward]), docids(100), useless)

    # 5 × 10 winners in 3 segments, 3 × 10 of them in 2, 2 × 10 in the merge.
    assert slots(rounds) == [[20] * 5, [17, 17, 16], [15, 15], [20]]


def test_the_merge_is_shown_once_in_each_order() -> None:
    orders = [forward, reverse, shuffle(1)]

    _, (_, merges) = drove(segmented(20, None, 20, orders), docids(100), useless)

    assert [window.shown for window in merges] == [order(docids(20)) for order in orders]


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_candidates_need_no_call(count: int) -> None:
    ranking, rounds = drove(segmented(20, None, 20, [forward]), docids(count), useless)

    assert (ranking, rounds) == (docids(count), [])


@pytest.mark.parametrize(
    ("window_size", "segments", "winners", "expected"),
    [
        (20, 5, None, 4),
        (20, 2, None, 10),
        (20, 50, None, 2),  # never one alone where a window can hold two
        (20, 5, 7, 7),
        (3, 5, None, 1),  # never more than half a window, or a merge would not get smaller
        (2, 5, None, 1),
        (10, 5, 9, 5),  # a window made smaller to fit the context
    ],
)
def test_winners_of_a_segment(
    window_size: int, segments: int, winners: int | None, expected: int
) -> None:
    assert winners_of(window_size, segments, winners) == expected


@settings(deadline=None, max_examples=80)
@given(cases())
def test_any_answers_give_a_permutation_from_legal_windows(
    case: tuple[int, int, int | None, int, list[Order]],
) -> None:
    window_size, count, winners, top, orders = case
    first_stage = docids(count)

    ranking, rounds = drove(segmented(window_size, winners, top, orders), first_stage, noisy(count))

    assert sorted(ranking) == sorted(first_stage)
    for windows in rounds:
        for window in windows:
            assert sorted(window.shown) == sorted(window.prior)
            assert len(set(window.prior)) == len(window.prior) <= window_size
            assert 1 <= window.wants <= len(window.prior)
    for segments in rounds[:-1]:
        lengths = [len(window.prior) for window in segments]
        assert max(lengths) - min(lengths) <= 1
        assert len(segments) == -(-sum(lengths) // window_size)
        # Striped: the first of all segments are the first of what was dealt, and so on.
        pool = [docid for place in range(max(lengths)) for docid in _column(segments, place)]
        assert [window.prior for window in segments] == [
            tuple(pool[start :: len(segments)]) for start in range(len(segments))
        ]
    if rounds:
        assert len(rounds[-1]) == len(orders)


@settings(deadline=None, max_examples=60)
@given(cases(), st.integers(0, 99))
def test_a_perfect_judge_gets_as_many_right_as_a_segment_sends(
    case: tuple[int, int, int | None, int, list[Order]], seed: int
) -> None:
    window_size, count, winners, top, orders = case
    truth = shuffled(count, seed)

    ranking, rounds = drove(
        segmented(window_size, winners, top, orders), docids(count), perfect(truth)
    )

    promised = min((window.wants for windows in rounds for window in windows), default=count)
    assert ranking[:promised] == truth[:promised]
    if len(rounds) == 2:
        assert promised >= min(top, winners_of(window_size, len(rounds[0]), winners))


@settings(deadline=None, max_examples=60)
@given(cases())
def test_losers_keep_place_in_segment_then_first_stage_rank(
    case: tuple[int, int, int | None, int, list[Order]],
) -> None:
    window_size, count, winners, top, orders = case
    first_stage = docids(count)
    placed: dict[Window, Permutation] = {}
    inner = noisy(count)

    def judge(window: Window) -> Permutation:
        placed[window] = inner(window)
        return placed[window]

    ranking, rounds = drove(segmented(window_size, winners, top, orders), first_stage, judge)

    tail: list[str] = []
    for segments in rounds[:-1]:
        m = winners_of(window_size, len(segments), winners)
        places = [
            (place, first_stage.index(docid), docid)
            for window in segments
            for place, docid in enumerate(placed[window].order)
            if place >= m
        ]
        tail = [docid for _, _, docid in sorted(places)] + tail
    assert list(ranking[count - len(tail) :]) == tail


@settings(deadline=None, max_examples=40)
@given(cases())
def test_useless_answers_leave_the_first_stage(
    case: tuple[int, int, int | None, int, list[Order]],
) -> None:
    window_size, count, winners, top, orders = case

    ranking, _ = drove(segmented(window_size, winners, top, orders), docids(count), useless)

    assert ranking == docids(count)


def _column(segments: Round, place: int) -> Ranking:
    return tuple(window.prior[place] for window in segments if place < len(window.prior))
