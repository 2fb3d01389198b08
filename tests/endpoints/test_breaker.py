"""When a server is left alone: failures in a row, or a share of calls turned away."""

from __future__ import annotations

from random import Random

import pytest

from batchrank.serving.breaker import Breaker


def test_a_breaker_opens_on_failures_in_a_row_and_on_a_share_of_refusals() -> None:
    breaker = Breaker()
    for _ in range(20):
        assert not breaker.failed(overloaded=False)
        assert not breaker.failed(overloaded=False)
        breaker.succeeded()
    opened = [breaker.failed(overloaded=False) for _ in range(6)]
    assert opened == [False, False, False, True, False, False]
    breaker.close()
    for _ in range(40):  # one in ten is turned away: that is borne
        assert not breaker.failed(overloaded=True)
        for _ in range(9):
            breaker.succeeded()
    assert any(breaker.failed(overloaded=True) for _ in range(4))
    assert breaker.is_open


@pytest.mark.parametrize(
    ("share", "least", "most"), [(0.05, 0, 2), (0.1, 0, 50), (0.5, 1000, 3000)]
)
def test_calls_turned_away_at_random_do_not_rest_a_server_that_answers_most(
    share: float, least: int, most: int
) -> None:
    breaker, random, rests = Breaker(), Random(7), 0
    for _ in range(20_000):
        if random.random() >= share:
            breaker.succeeded()
        elif breaker.failed(overloaded=True):
            rests += 1
            breaker.close()
    assert least <= rests <= most
