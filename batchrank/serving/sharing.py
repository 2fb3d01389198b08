"""Leaves servers to the people they also serve: by the hour, and by who is waiting."""

from __future__ import annotations

from collections.abc import Callable

from batchrank.clock import Clock
from batchrank.errors import ServerError
from batchrank.serving.endpoint import Endpoint
from batchrank.serving.pool import Pool
from batchrank.serving.quiethours import Curfew

_LOOK_SECONDS = 2.0
"""Between two looks at a server's queue: what is in flight by then is not taken back."""


async def keep_quiet_hours(pool: Pool, curfew: Curfew) -> None:
    """Hold all calls in quiet hours, for ever."""
    while True:
        await curfew.begun()
        pool.hold(curfew.told)
        await curfew.gate()
        pool.release()


async def give_way(
    pool: Pool, endpoint: Endpoint, most: int, say: Callable[[str], None], clock: Clock
) -> None:
    """Take back as many calls as wait at the server beyond `most`, for ever.

    A queue does not tell whose it is. So the calls in flight fall by what is too much, at once, and
    come back step by step: with nobody else there, they end at the slots and `most`.
    """
    told = False
    while True:
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
        await clock.sleep(_LOOK_SECONDS)
