"""Hands a program's requests to the thread that a run reads its input in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from batchrank.library.requests import Requests, each, encoded

_WAITING = 1024
"""Requests that are taken from the program before the run has read them."""
_BLOCK = 256


class Feed:
    """Takes `requests` as the run reads them; `fill` and `blocks` are its two ends."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue(_WAITING)
        self._loop = asyncio.get_running_loop()

    async def fill(self) -> None:
        """Take every request, to the last; raises UsageError, and what the program raises."""
        async for request in each(self._requests):
            await self._queue.put(encoded(request))
        await self._queue.put(None)

    def blocks(self) -> Iterator[list[bytes]]:
        """The lines in blocks, as many as wait; for a thread that is not the loop's."""
        is_over = False
        while not is_over:
            taken = asyncio.run_coroutine_threadsafe(self._take(), self._loop).result()
            is_over = taken[-1] is None
            if block := [line for line in taken if line is not None]:
                yield block

    def close(self) -> None:
        """Let a thread go that waits for more."""
        if self._queue.empty():
            self._queue.put_nowait(None)

    async def _take(self) -> list[bytes | None]:
        taken = [await self._queue.get()]
        while taken[-1] is not None and len(taken) < _BLOCK and not self._queue.empty():
            taken.append(self._queue.get_nowait())
        return taken
