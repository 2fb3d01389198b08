"""Passes: the same strategy over several presentations, in step, fused, and harmless."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchrank.answers import Reading, permutation
from batchrank.strategies.base import Plan, Strategy
from batchrank.strategies.orders import Order, forward, reverse, shuffle
from batchrank.strategies.passes import in_passes
from batchrank.strategies.segmented import segmented
from batchrank.strategies.sliding import sliding
from batchrank.values import Permutation, Ranking, Status, Window
from tests.strategies.driving import docids, drove, noisy, perfect, shuffled, useless

ORDERS = st.lists(
    st.sampled_from((forward, reverse, shuffle(1), shuffle(2))), min_size=1, max_size=4
)
STRATEGIES = (
    sliding(6, 3),
    sliding(6, 5),
    segmented(6, None, 6, [forward]),
    segmented(6, 3, 2, [forward, reverse]),
)


def test_one_forward_pass_asks_what_the_strategy_asks() -> None:
    alone = segmented(20, None, 20, [forward])

    assert drove(in_passes(alone, [forward]), docids(100), noisy(1)) == drove(
        alone, docids(100), noisy(1)
    )


def test_passes_share_their_rounds() -> None:
    _, rounds = drove(in_passes(sliding(20, 10), [forward, reverse]), docids(100), useless)

    assert [len(windows) for windows in rounds] == [2] * 9


def test_forward_and_reverse_of_everything_cost_twice() -> None:
    one = segmented(20, None, 20, [forward])

    _, rounds = drove(in_passes(one, [forward, reverse]), docids(100), useless)

    assert [len(windows) for windows in rounds] == [10, 2]
    assert sum(len(window.shown) for windows in rounds for window in windows) == 240


def test_a_pass_changes_what_is_shown_and_never_the_prior() -> None:
    strategy = segmented(4, None, 4, [forward])

    _, (segments, _) = drove(in_passes(strategy, [forward, reverse]), docids(8), useless)

    ahead, back = segments[:2], segments[2:]
    assert [window.prior for window in ahead] == [window.prior for window in back]
    assert [window.shown[::-1] for window in ahead] == [window.shown for window in back]


def test_merge_passes_compose_with_passes() -> None:
    strategy = segmented(4, None, 4, [forward, reverse])

    _, (_, merges) = drove(in_passes(strategy, [forward, reverse]), docids(8), useless)

    prior = ("d0", "d1", "d2", "d3")
    assert [window.prior for window in merges] == [prior] * 4
    assert [window.shown for window in merges] == [prior, prior[::-1], prior[::-1], prior]


def first_shown_wins(window: Window) -> Permutation:
    """Believes in whatever stands first in the prompt."""
    return permutation(window, Reading((1,), Status.REPAIRED))


def last_shown_wins(window: Window) -> Permutation:
    """Believes in whatever stands last in the prompt."""
    return permutation(window, Reading((len(window.shown),), Status.REPAIRED))


def test_each_pass_merges_its_own_winners() -> None:
    strategy = segmented(4, 1, 4, [forward])

    _, (_, merges) = drove(in_passes(strategy, [forward, reverse]), docids(8), first_shown_wins)

    assert [window.prior for window in merges] == [("d0", "d1"), ("d6", "d7")]


def test_passes_are_fused_by_borda_with_ties_to_the_first_stage() -> None:
    strategy = sliding(4, 2)

    ranking, _ = drove(in_passes(strategy, [forward, reverse]), docids(3), last_shown_wins)

    # d2 d0 d1 and d0 d1 d2: sums of ranks 1, 3 and 2.
    assert ranking == ("d0", "d2", "d1")


def test_a_pass_that_ends_early_holds_up_no_other() -> None:
    def until_d2_is_best(first_stage: Ranking) -> Plan:
        order = first_stage
        for _ in range(3):
            (answer,) = yield (Window(order, order, 1),)
            order = answer.order
            if order[0] == "d2":
                break
        return order

    ranking, rounds = drove(
        in_passes(until_d2_is_best, [forward, reverse]), docids(3), last_shown_wins
    )

    # Forward shows d2 last at once; reverse shows d0 last for ever.
    assert [len(windows) for windows in rounds] == [2, 1, 1]
    assert ranking == ("d0", "d2", "d1")


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(STRATEGIES), st.integers(0, 40), ORDERS)
def test_useless_answers_leave_the_first_stage_in_every_presentation(
    strategy: Strategy, count: int, orders: list[Order]
) -> None:
    ranking, _ = drove(in_passes(strategy, orders), docids(count), useless)

    assert ranking == docids(count)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(STRATEGIES), st.integers(0, 40), ORDERS, st.integers(0, 99))
def test_two_runs_ask_the_same_and_end_the_same(
    strategy: Strategy, count: int, orders: list[Order], seed: int
) -> None:
    passes = in_passes(strategy, orders)

    first = drove(passes, docids(count), noisy(seed))

    assert first == drove(passes, docids(count), noisy(seed))
    assert sorted(first[0]) == sorted(docids(count))


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 40), ORDERS, st.integers(0, 99))
def test_a_perfect_judge_is_not_hurt_by_passes(count: int, orders: list[Order], seed: int) -> None:
    truth = shuffled(count, seed)

    ranking, _ = drove(in_passes(sliding(6, 3), orders), docids(count), perfect(truth))

    assert ranking[:3] == truth[:3]


@pytest.mark.parametrize("name", ["sliding", "segmented"])
def test_orders_of_one_document_need_no_call(name: str) -> None:
    strategy = sliding(6, 3) if name == "sliding" else segmented(6, None, 6, [reverse])

    assert drove(in_passes(strategy, [reverse, forward]), ("only",), useless) == (("only",), [])
