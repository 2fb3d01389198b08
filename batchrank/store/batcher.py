"""Collects single items into batches: whatever came while one batch was handled is the next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

PATIENCE_SECONDS = 0.05
"""From the beginning of one batch until another begins that is not urgent."""


class Batcher(Generic[Item, Result]):
    """Group commit: the batch grows with the load, whatever came while another was handled.

    `handle` takes the items of a batch and returns one result each, in order. An error it raises
    reaches every caller of that batch.
    """

    def __init__(self, handle: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]]) -> None:
        self._handle = handle
        self._waiting: list[tuple[Item, asyncio.Future[Result]]] = []
        self._is_urgent = False
        self._not_before = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    async def submit(self, item: Item, *, patient: bool = False) -> Result:
        """Wait until the batch that holds `item` is handled.

        Where all who wait are `patient`, a batch is not begun at once but a little after the last:
        each costs much more than another item in it.
        """
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        self._is_urgent |= not patient
        self._go_on()
        return await future

    async def drain(self) -> None:
        """Wait until nothing is left to handle."""
        while self._waiting or self._task is not None:
            self._is_urgent = True
            self._go_on()
            if self._task is not None:
                await asyncio.wait([self._task])

    def _go_on(self) -> None:
        if self._task is not None or not self._waiting:
            return
        loop = asyncio.get_running_loop()
        if self._is_urgent or loop.time() >= self._not_before:
            self._begin()
        elif self._timer is None:
            self._timer = loop.call_at(self._not_before, self._begin)

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        self._not_before = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        batch, self._waiting, self._is_urgent = self._waiting, [], False
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
        self._go_on()
