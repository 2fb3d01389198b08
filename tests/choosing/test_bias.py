"""Position bias is told from what documents are worth, whatever order they come in."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchrank.measuring.bias import Presented, pairs_of, position_bias, winners_by_place
from batchrank.strategies.orders import forward, reverse, shuffle
from batchrank.values import Ranking
from tests.cli.running import gain

ORDERS = (forward, reverse, shuffle(1))
Favour = Callable[[float], float]


def answered(shown: Ranking, qid: str, favour: Favour) -> Presented:
    """What a judge answers that adds a favour for a place (0 to 1) to each document's worth."""
    last = len(shown) - 1
    scores = {d: gain(qid, d) + favour(place / last) for place, d in enumerate(shown)}
    return Presented(shown, tuple(sorted(shown, key=lambda d: -scores[d])))


def queries(favour: Favour, *, sorted_by_worth: bool) -> list[list[Presented]]:
    found = []
    for number in range(15):
        qid = f"q{number}"
        docids = tuple(f"d{place}" for place in range(12))
        if sorted_by_worth:
            docids = tuple(sorted(docids, key=lambda d: -gain(qid, d)))
        found.append([answered(order(docids), qid, favour) for order in ORDERS])
    return found


@pytest.mark.parametrize("sorted_by_worth", [False, True])
@pytest.mark.parametrize(
    ("favour", "favours"),
    [
        (lambda place: 0.0, "nothing"),
        (lambda place: 0.6 * (1 - place), "first"),
        (lambda place: 9.0 * (1 - place), "first"),
        (lambda place: 0.6 * place, "last"),
        (lambda place: 0.6 * (2 * place - 1) ** 2, "ends"),
        (lambda place: 9.0 * (2 * place - 1) ** 2, "ends"),
        (lambda place: -0.6 * (2 * place - 1) ** 2, "middle"),
    ],
)
def test_the_favoured_places_are_found(favour: Favour, favours: str, sorted_by_worth: bool) -> None:
    found = position_bias(queries(favour, sorted_by_worth=sorted_by_worth))
    assert found.favours == favours
    assert found.front.low <= found.front.value <= found.front.high


def test_a_judge_that_only_looks_at_documents_has_effects_of_exactly_nothing() -> None:
    found = position_bias(queries(lambda place: 0.0, sorted_by_worth=True))
    for effect in (found.front, found.ends):
        assert (effect.value, effect.low, effect.high) == pytest.approx((0, 0, 0), abs=1e-12)


@given(st.permutations(range(7)), st.permutations(range(7)))
def test_pairs_are_alike_echoed_or_against(first: list[int], second: list[int]) -> None:
    shown = tuple(f"d{number}" for number in range(7))
    one = Presented(shown, tuple(f"d{number}" for number in first))
    other = Presented(shown[::-1], tuple(f"d{number}" for number in second))
    found = pairs_of(one, other)
    assert found.same + found.echoed + found.against == pytest.approx(1)
    assert (found.same == 1) == (first == second)


def test_pairs_of_an_echo() -> None:
    shown = ("a", "b", "c")
    echo = pairs_of(Presented(shown, shown), Presented(shown[::-1], shown[::-1]))
    assert (echo.same, echo.echoed, echo.against) == (0, 1, 0)
    turned = pairs_of(Presented(shown, shown[::-1]), Presented(shown[::-1], shown))
    assert (turned.same, turned.echoed, turned.against) == (0, 0, 1)


def test_winners_are_counted_where_they_stood() -> None:
    shown = tuple("abcdefghij")
    window = Presented(shown, ("j", "a", *shown[1:9]))
    assert winners_by_place([window], 5) == [0.5, 0, 0, 0, 0.5]
