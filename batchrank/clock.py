"""Time as the job sees it; a test puts its own in the place of this one."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """What waits ask for the time."""

    def now(self) -> float:
        """Seconds that never jump, from any beginning."""

    def wall(self) -> float:
        """The time on the wall, in seconds since the epoch; it jumps where the clock is set."""

    async def sleep(self, seconds: float) -> None:
        """Return after that many seconds."""


class SystemClock:
    """The machine's own."""

    def now(self) -> float:
        """See `Clock.now`."""
        return time.monotonic()

    def wall(self) -> float:
        """See `Clock.wall`."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """See `Clock.sleep`."""
        await asyncio.sleep(seconds)
