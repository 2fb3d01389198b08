"""Holds writes to so many a second."""

from __future__ import annotations

from typing import Protocol

_BATCH = 1000
_BATCHES_A_SECOND = 10


class Clock(Protocol):
    """The part of batchrank.clock.Clock that is needed."""

    def now(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...


class Rate:
    """`most` operations a second, evenly; None for as many as go."""

    def __init__(self, most: int | None, clock: Clock) -> None:
        self._most = most
        self._clock = clock
        self._next = 0.0

    @property
    def batch(self) -> int:
        """How many operations to send at once."""
        if self._most is None:
            return _BATCH
        return max(1, min(_BATCH, self._most // _BATCHES_A_SECOND))

    async def spend(self, operations: int) -> None:
        """Return when so many operations may be sent."""
        if self._most is None:
            return
        now = self._clock.now()
        begin = max(now, self._next)
        self._next = begin + operations / self._most
        if begin > now:
            await self._clock.sleep(begin - now)
