"""Time as the job sees it; a test puts its own in the place of this one."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """What waits ask for the time."""

    def now(self) -> float:
        """Seconds that never jump, from any beginning."""

    def today(self) -> datetime:
        """The date and time of day on the wall, local."""

    async def sleep(self, seconds: float) -> None:
        """Return after that many seconds."""


class SystemClock:
    """The machine's own."""

    def now(self) -> float:
        """See `Clock.now`."""
        return time.monotonic()

    def today(self) -> datetime:
        """See `Clock.today`."""
        return datetime.now().astimezone()

    async def sleep(self, seconds: float) -> None:
        """See `Clock.sleep`."""
        await asyncio.sleep(seconds)
