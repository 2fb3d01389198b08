"""The next delay before a request is tried again, or surrender."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeVar

from batchrank.errors import ServerError, UnavailableError

T = TypeVar("T")

MAX_ATTEMPTS = 5
_MOST_LATE = 2
_FIRST_SECONDS = 0.5
_LONGEST_SECONDS = 30.0
_LONGEST_RETRY_AFTER = 120.0
_LONGEST_LOADING = 10.0


def next_delay(attempt: int, retry_after: float | None, random: Random) -> float | None:
    """Seconds to wait after failed attempt number `attempt` (1 is the first), None to give up."""
    return None if attempt >= MAX_ATTEMPTS else delay_of(attempt, retry_after, random)


def delay_of(attempt: int, retry_after: float | None, random: Random) -> float:
    """The same without an end.

    Full jitter over an exponential ceiling, so that many callers don't return together; a server's
    Retry-After is honoured up to two minutes and never shortened.
    """
    ceiling = min(_LONGEST_SECONDS, _FIRST_SECONDS * 2.0 ** (attempt - 1))
    delay = random.uniform(ceiling / 2, ceiling)
    if retry_after is not None:
        return max(delay, min(retry_after, _LONGEST_RETRY_AFTER))
    return delay


async def persist(
    attempt: Callable[[], Awaitable[T]], pause: Callable[[float], Awaitable[None]], random: Random
) -> T:
    """Call `attempt` until it succeeds; `pause` waits the given seconds in between.

    Raises the last ServerError where it is not retryable, all attempts are used up, or it is the
    second that came too late: a server that hangs is not waited for five times.
    """
    number = late = 0
    while True:
        number += 1
        try:
            return await attempt()
        except ServerError as error:
            asked = None
            if isinstance(error, UnavailableError):
                asked = error.retry_after
                late += error.timed_out
            delay = next_delay(number, asked, random) if error.retryable else None
            if delay is None or late == _MOST_LATE:
                raise
        await pause(delay)


async def persist_loading(
    attempt: Callable[[], Awaitable[T]],
    pause: Callable[[float], Awaitable[None]],
    seconds: float,
    loading: Callable[[], None],
) -> T:
    """Call `attempt` until it succeeds or fails for another reason than a model that still loads.

    Raises its ServerError, also where the model still loads after `seconds` of pauses. `loading` is
    called before each pause.
    """
    waited, pauses = 0.0, 0
    while True:
        try:
            return await attempt()
        except UnavailableError as error:
            if not error.loading or waited >= seconds:
                raise
        loading()
        length = min(_LONGEST_LOADING, _FIRST_SECONDS * 2.0**pauses, seconds - waited)
        await pause(length)
        waited += length
        pauses += 1
