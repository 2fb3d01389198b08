"""Retries: which failures are tried again, how often, and how long it waits between."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchrank.errors import (
    BadResponseError,
    ContextOverflowError,
    FatalServerError,
    OverloadedError,
    RefusedError,
    ServerError,
    UnavailableError,
)
from batchrank.serving.backoff import MAX_ATTEMPTS, next_delay, persist, persist_loading


class Server:
    """Fails with each of `failures` in turn, then answers; notes every pause."""

    def __init__(self, *failures: ServerError) -> None:
        self.failures = list(failures)
        self.attempts = 0
        self.pauses: list[float] = []

    async def attempt(self) -> str:
        self.attempts += 1
        if self.failures:
            raise self.failures.pop(0)
        return "answer"

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)


async def asked(server: Server) -> str:
    """What persisting brings."""
    return await persist(server.attempt, server.pause, Random(1))


async def test_an_answer_is_not_waited_for() -> None:
    server = Server()

    assert await asked(server) == "answer"
    assert (server.attempts, server.pauses) == (1, [])


@pytest.mark.parametrize("error", [UnavailableError, OverloadedError, BadResponseError])
async def test_what_may_pass_is_tried_again(error: type[ServerError]) -> None:
    server = Server(error("1"), error("2"))

    assert await asked(server) == "answer"
    assert (server.attempts, len(server.pauses)) == (3, 2)


@pytest.mark.parametrize("error", [ContextOverflowError, RefusedError, FatalServerError])
async def test_what_can_t_pass_is_raised_at_once(error: type[ServerError]) -> None:
    server = Server(error("no"))

    with pytest.raises(error):
        await asked(server)
    assert (server.attempts, server.pauses) == (1, [])


async def test_attempts_are_used_up_and_the_last_failure_is_raised() -> None:
    server = Server(*(UnavailableError(str(number)) for number in range(100)))

    with pytest.raises(UnavailableError, match=f"^{MAX_ATTEMPTS - 1}$"):
        await asked(server)
    assert server.attempts == MAX_ATTEMPTS
    assert len(server.pauses) == MAX_ATTEMPTS - 1


async def test_one_that_came_too_late_is_tried_again_once() -> None:
    late = [UnavailableError(str(number), timed_out=True) for number in range(5)]
    server = Server(late[0], UnavailableError("reset"), *late[1:])

    with pytest.raises(UnavailableError, match=r"^1$"):
        await asked(server)
    assert server.attempts == 3


async def test_a_retry_after_is_waited_for() -> None:
    server = Server(OverloadedError("busy", retry_after=17))

    await asked(server)

    assert server.pauses == [17]


@settings(deadline=None)
@given(st.integers(1, MAX_ATTEMPTS - 1), st.integers())
def test_a_delay_is_random_below_a_ceiling_that_doubles(attempt: int, seed: int) -> None:
    delay = next_delay(attempt, None, Random(seed))

    ceiling = 0.5 * 2 ** (attempt - 1)
    assert delay is not None
    assert ceiling / 2 <= delay <= min(ceiling, 30)


@settings(deadline=None)
@given(st.integers(1, MAX_ATTEMPTS - 1), st.floats(0, 1e9), st.integers())
def test_a_retry_after_is_never_shortened_below_two_minutes(
    attempt: int, asked_for: float, seed: int
) -> None:
    delay = next_delay(attempt, asked_for, Random(seed))

    assert delay is not None
    assert delay >= min(asked_for, 120)
    assert delay <= 120


@pytest.mark.parametrize("attempt", [MAX_ATTEMPTS, MAX_ATTEMPTS + 1])
def test_nothing_is_tried_for_ever(attempt: int) -> None:
    assert next_delay(attempt, None, Random(1)) is None
    assert next_delay(attempt, 5, Random(1)) is None


def test_callers_that_fail_together_do_not_return_together() -> None:
    delays = sorted(next_delay(3, None, Random(seed)) or 0 for seed in range(20))

    assert all(earlier < later for earlier, later in pairwise(delays))


async def test_a_model_that_loads_is_waited_for_up_to_a_limit() -> None:
    told: list[int] = []
    loads = [UnavailableError("loading", loading=True) for _ in range(4)]
    server = Server(*loads)

    def tell() -> None:
        told.append(server.attempts)

    assert await persist_loading(server.attempt, server.pause, 900, tell) == "answer"
    assert told == [1, 2, 3, 4]
    assert server.pauses == [0.5, 1, 2, 4]

    server = Server(*[UnavailableError("loading", loading=True)] * 1000)
    with pytest.raises(UnavailableError, match="loading"):
        await persist_loading(server.attempt, server.pause, 60, tell)
    assert sum(server.pauses) == 60


@pytest.mark.parametrize("error", [UnavailableError("refused"), FatalServerError("bad key")])
async def test_a_start_waits_for_nothing_but_loading(error: ServerError) -> None:
    server = Server(error)

    with pytest.raises(type(error)):
        await persist_loading(server.attempt, server.pause, 900, lambda: None)
    assert server.pauses == []
