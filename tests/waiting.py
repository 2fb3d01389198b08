"""Waits that end as soon as what they wait for holds, and for good on the busiest machine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

PATIENCE = 300.0
"""Seconds after which what tests wait for will never be: far more than any of it takes."""
_LATE = f"it did not happen within {PATIENCE:.0f} s"


def until(condition: Callable[[], object]) -> None:
    """Wait for what another thread or process does; TimeoutError after PATIENCE."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(_LATE)
        time.sleep(0.005)


async def soon(condition: Callable[[], object]) -> None:
    """Let others of this event loop run until it holds; TimeoutError after PATIENCE."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - of many kinds of conditions, few have events
            await asyncio.sleep(0.001)
