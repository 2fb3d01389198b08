"""Lets so many calls through at once, the most urgent first."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

from batchrank.errors import StoppedError

Priority = tuple[int, int]
"""Smaller goes first: (−round, query), so that a merge goes before a new segment."""


class Slots:
    """Calls in flight, at most `capacity`, and those that wait for their turn."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.in_flight = 0
        self._heap: list[tuple[Priority, int, asyncio.Future[None]]] = []
        self._order = count()
        self._stopped = False

    @asynccontextmanager
    async def slot(self, priority: Priority) -> AsyncIterator[None]:
        """Hold one slot; StoppedError where `stop` was called before one was free."""
        await self._acquire(priority)
        try:
            yield
        finally:
            self._release()

    def stop(self) -> None:
        """Send home all who wait and all who come; those in flight go on."""
        self._stopped = True
        for _, _, future in self._heap:
            if not future.done():
                future.set_exception(StoppedError("stopped before it was sent"))
        self._heap.clear()

    async def _acquire(self, priority: Priority) -> None:
        if self._stopped:
            raise StoppedError("stopped before it was sent")
        if self.in_flight < self.capacity:
            self.in_flight += 1
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._heap, (priority, next(self._order), future))
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self._release()
            raise

    def _release(self) -> None:
        # A slot is handed over, not freed, so that nobody who comes now overtakes.
        while self._heap:
            _, _, future = heapq.heappop(self._heap)
            if not future.done():
                future.set_result(None)
                return
        self.in_flight -= 1
