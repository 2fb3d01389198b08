"""The next delay before a request is tried again, or surrender."""

from __future__ import annotations

from random import Random

MAX_ATTEMPTS = 5
_FIRST_SECONDS = 0.5
_LONGEST_SECONDS = 30.0
_LONGEST_RETRY_AFTER = 120.0


def next_delay(attempt: int, retry_after: float | None, random: Random) -> float | None:
    """Seconds to wait after failed attempt number `attempt` (1 is the first), None to give up.

    Full jitter over an exponential ceiling, so that many callers don't return together; a server's
    Retry-After is honoured up to two minutes and never shortened.
    """
    if attempt >= MAX_ATTEMPTS:
        return None
    ceiling = min(_LONGEST_SECONDS, _FIRST_SECONDS * 2.0 ** (attempt - 1))
    delay = random.uniform(ceiling / 2, ceiling)
    if retry_after is not None:
        return max(delay, min(retry_after, _LONGEST_RETRY_AFTER))
    return delay
