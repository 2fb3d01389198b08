"""Stages one after the other: what reaches a stage, what it promises, its number."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from batchrank.strategies.cascade import cascade
from batchrank.strategies.orders import forward
from batchrank.strategies.segmented import segmented
from batchrank.strategies.setwise import setwise
from batchrank.strategies.single import single
from batchrank.strategies.topdown import topdown
from tests.strategies.driving import counts, docids, drove, noisy, perfect, shuffled, useless

STAGES = cascade(
    [(topdown(20, 10), None), (segmented(8, 4, 8, [forward]), 10), (setwise(3, 2, "heap"), 4)]
)


@settings(deadline=None, max_examples=60)
@given(counts(20), st.integers(0, 99))
def test_a_perfect_judge_gets_right_what_the_last_stage_promises(count: int, seed: int) -> None:
    truth = shuffled(count, seed)

    ranking, rounds = drove(STAGES, docids(count), perfect(truth))

    assert ranking[:2] == truth[:2]
    assert sorted(ranking) == sorted(truth)
    stages = [{window.stage for window in windows} for windows in rounds]
    assert all(len(stage) == 1 for stage in stages)
    assert [min(stage) for stage in stages] == sorted(min(stage) for stage in stages)


@settings(deadline=None, max_examples=40)
@given(counts(20), st.integers(0, 99))
def test_any_answers_give_a_permutation(count: int, seed: int) -> None:
    assert sorted(drove(STAGES, docids(count), noisy(seed))[0]) == sorted(docids(count))
    assert drove(STAGES, docids(count), useless)[0] == docids(count)


def test_a_stage_sees_the_best_of_the_one_before_and_no_more() -> None:
    truth = docids(9)[::-1]
    stages = cascade([(single(6, 6), None), (single(None, 3), 3)])

    ranking, ((first,), (second,)) = drove(stages, docids(9), perfect(truth))

    assert (first.stage, second.stage) == (0, 1)
    assert second.prior == ("d5", "d4", "d3")
    assert ranking == ("d5", "d4", "d3", "d2", "d1", "d0", "d6", "d7", "d8")


def test_no_stage_is_the_first_stage() -> None:
    assert drove(cascade([]), docids(3), useless) == (docids(3), [])
