"""Leaves servers to the people they also serve: by the hour, and by who is waiting."""

from __future__ import annotations

from collections.abc import Callable

from batchrank.clock import Clock
from batchrank.errors import ServerError
from batchrank.serving.endpoint import Endpoint
from batchrank.serving.endpoints import Pool
from batchrank.spec.quiet import QuietHours

_LOOK_SECONDS = 2.0
"""Between two looks at a server's queue: what is in flight by then is not taken back."""
_LONGEST_SLEEP = 60.0
"""So that a clock that is set, or a machine that was suspended, is noticed."""


async def keep_quiet_hours(pool: Pool, hours: QuietHours, clock: Clock) -> None:
    """Hold all calls during `hours`, for ever."""
    quiet = False
    while True:
        left = hours.left(clock.today())
        if left is not None and not quiet:
            pool.hold(f"quiet hours until {hours.end:%H:%M}")
        elif left is None and quiet:
            pool.release()
        quiet = left is not None
        seconds = left.total_seconds() if left is not None else _LONGEST_SLEEP
        await clock.sleep(min(max(seconds, 1.0), _LONGEST_SLEEP))


async def give_way(
    pool: Pool, endpoint: Endpoint, most: int, say: Callable[[str], None], clock: Clock
) -> None:
    """Take back as many calls as wait at the server beyond `most`, for ever.

    A queue does not tell whose it is. So the calls in flight fall by what is too much, at once, and
    come back step by step: with nobody else there, they end at the slots and `most`.
    """
    told = False
    while True:
        await clock.sleep(_LOOK_SECONDS)
        try:
            crowd = await endpoint.backend.crowd(endpoint.in_flight)
        except ServerError:
            crowd = None
        if crowd is None and not told:
            told = True
            say(f"warning: {endpoint.url} does not tell who waits: max_waiting has no effect there")
        over = (crowd or 0) - most
        if over > 0:
            endpoint.cap = max(0, endpoint.in_flight - over)
        elif endpoint.cap is not None:
            raised = endpoint.cap + 1 + endpoint.cap // 4
            endpoint.cap = raised if raised < endpoint.capacity.limit else None
            pool.refill()
