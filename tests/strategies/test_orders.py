"""The names of presentations, and shuffles that a resumed job can repeat."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchrank.errors import UsageError
from batchrank.strategies.orders import parse_orders, shuffle
from tests.strategies.driving import docids


def test_a_comma_list_names_presentations() -> None:
    orders = parse_orders("forward, reverse,shuffle:7")

    assert [order(docids(5)) for order in orders] == [
        docids(5),
        docids(5)[::-1],
        shuffle(7)(docids(5)),
    ]


@pytest.mark.parametrize(
    "text",
    ["", "backward", "forward,", "shuffle", "shuffle:", "shuffle:-1", "shuffle:x", "shuffle:٣"],
)
def test_anything_else_is_refused_by_name(text: str) -> None:
    with pytest.raises(UsageError, match="is no pass"):
        parse_orders(text)


def test_a_shuffle_is_the_same_on_every_machine_and_night() -> None:
    assert shuffle(7)(docids(6)) == ("d1", "d0", "d4", "d5", "d3", "d2")


@settings(deadline=None)
@given(st.integers(0, 60), st.integers(0, 2**40))
def test_a_shuffle_loses_and_repeats_nothing(count: int, seed: int) -> None:
    order = shuffle(seed)

    assert sorted(order(docids(count))) == sorted(docids(count))
    assert order(docids(count)) == shuffle(seed)(docids(count))


def test_seeds_differ() -> None:
    assert len({shuffle(seed)(docids(20)) for seed in range(10)}) == 10
