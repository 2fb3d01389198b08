"""Collects single items into batches: whatever came while one batch was handled is the next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Batcher(Generic[Item, Result]):
    """Group commit: no timer and no size, the batch grows with the load.

    `handle` takes the items of a batch and returns one result each, in order. An error it raises
    reaches every caller of that batch.
    """

    def __init__(self, handle: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]]) -> None:
        self._handle = handle
        self._waiting: list[tuple[Item, asyncio.Future[Result]]] = []
        self._task: asyncio.Task[None] | None = None

    async def submit(self, item: Item) -> Result:
        """Wait until the batch that holds `item` is handled."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return await future

    async def drain(self) -> None:
        """Wait until nothing is left to handle."""
        while self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                results = await self._handle([item for item, _ in batch])
            except Exception as error:  # whatever it is: a caller left without it waits for ever
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
            else:
                for (_, future), result in zip(batch, results, strict=True):
                    if not future.done():  # a caller that was cancelled has gone
                        future.set_result(result)
        self._task = None
