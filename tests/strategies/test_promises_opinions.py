"""Opinions of other windows: they count where the model contradicts itself, and only there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchrank.strategies.opinions import contradiction, reconciled
from batchrank.strategies.orders import forward, reverse, shuffle
from batchrank.strategies.segmented import segmented
from batchrank.values import Permutation, Ranking, Window
from tests.strategies.driving import Judge, docids, drove, perfect, shuffled, useless


@pytest.mark.parametrize(
    ("opinions", "share"),
    [
        ([], 0.0),
        ([("d0",), ()], 0.0),
        ([("d0", "d2"), ("d1", "d3")], 0.0),
        ([("d2", "d0"), ("d1", "d3")], 0.5),
        ([("d3", "d2", "d0")], 1.0),
    ],
)
def test_contradicted_pairs_are_counted(opinions: list[Ranking], share: float) -> None:
    assert contradiction(opinions, docids(4)) == share


@given(st.integers(0, 30), st.integers(0, 99), st.integers(1, 5))
def test_a_consistent_order_stays_whatever_the_first_stage_says(
    count: int, seed: int, parts: int
) -> None:
    order = shuffled(count, seed)
    opinions = [order[start::parts] for start in range(parts)]

    assert reconciled(order, opinions, docids(count)) == order


@given(st.integers(0, 30), st.integers(0, 99), st.integers(0, 99), st.integers(1, 5))
def test_any_opinions_give_a_permutation(count: int, seed: int, other: int, parts: int) -> None:
    said = shuffled(count, other)
    opinions = [said[start::parts] for start in range(parts)]

    assert sorted(reconciled(shuffled(count, seed), opinions, docids(count))) == sorted(said)


def test_two_contradicting_opinions_meet_halfway() -> None:
    # Both land at place 2; as all that was said is contradicted, the first stage counts by half.
    assert reconciled(docids(5), [("d4", "d0")], docids(5)) == ("d1", "d0", "d2", "d4", "d3")


def test_a_merge_is_not_asked_again_where_it_agrees_with_the_segments() -> None:
    strategy = segmented(20, None, 10, [forward, reverse, shuffle(1)], agree_top=10)

    _, rounds = drove(strategy, docids(100), perfect(shuffled(100, 1)))

    assert [len(windows) for windows in rounds] == [5, 1]


def test_one_window_has_to_agree_with_another_order_of_itself() -> None:
    strategy = segmented(20, None, 10, [forward, reverse, shuffle(1)], agree_top=10)

    _, rounds = drove(strategy, docids(20), perfect(shuffled(20, 1)))

    assert [len(windows) for windows in rounds] == [1, 1]


def test_a_merge_that_disagrees_is_asked_in_every_order() -> None:
    strategy = segmented(20, None, 10, [forward, reverse, shuffle(1)], agree_top=10)

    ranking, rounds = drove(strategy, docids(100), _turning())

    assert [len(windows) for windows in rounds] == [5, 1, 1, 1]
    assert [windows[0].shown for windows in rounds[1:]] == [
        order(rounds[1][0].shown) for order in (forward, reverse, shuffle(1))
    ]
    assert sorted(ranking) == sorted(docids(100))


def test_a_fallen_back_segment_holds_no_opinion() -> None:
    truth = docids(40)[::-1]

    def judge(window: Window) -> Permutation:
        return useless(window) if len(window.prior) > 16 else perfect(truth)(window)

    ranking, rounds = drove(segmented(20, 8, 16, [forward]), docids(40), judge)

    # The merge alone decides; the segments' prior order, the other way round, is not weighed.
    merged = set(rounds[-1][0].prior)
    assert ranking[:16] == tuple(docid for docid in truth if docid in merged)


def _turning() -> Judge:
    """Takes back in the merge what it said of segments, each of which is one of five strides."""

    def judge(window: Window) -> Permutation:
        in_segment = len({int(docid[1:]) % 5 for docid in window.prior}) == 1
        return perfect(docids(100) if in_segment else docids(100)[::-1])(window)

    return judge
