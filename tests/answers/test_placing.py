"""Documents that an answer does not name keep the prior order, never the order of the prompt."""

from __future__ import annotations

from batchrank.answers import Reading, permutation, unanswered
from batchrank.values import Permutation, Status, Window

_REVERSED = Window(prior=("a", "b", "c", "d"), shown=("d", "c", "b", "a"), wants=2)


def test_named_documents_stand_first_and_the_rest_as_believed_so_far() -> None:
    placed = permutation(_REVERSED, Reading((2, 1), Status.OK))
    assert placed == Permutation(("c", "d", "a", "b"), 2, Status.OK)


def test_a_fallback_keeps_the_prior_order() -> None:
    placed = permutation(_REVERSED, Reading((), Status.FALLBACK, ("echo",)))
    assert placed == Permutation(_REVERSED.prior, 0, Status.FALLBACK, ("echo",))


def test_no_answer_keeps_the_prior_order_and_says_why() -> None:
    placed = unanswered(_REVERSED, "context")
    assert placed == Permutation(_REVERSED.prior, 0, Status.ERROR, ("context",))
