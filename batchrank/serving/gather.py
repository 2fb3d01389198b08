"""Waits for what several servers say, without letting one that is silent hold up the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from batchrank.clock import Clock

T = TypeVar("T")

HELD_UP_SECONDS = 60.0
"""What the slowest servers have once another is ready: they can be taken in later."""


async def gather_ready(
    works: Sequence[Awaitable[T]],
    is_ready: Callable[[T], bool],
    clock: Clock,
    *,
    first_is_enough: bool = False,
) -> list[T | None]:
    """What `works` come to, in order; None for those still going when waiting ends, and cancelled.

    Once one `is_ready` the others have a minute. `first_is_enough`: where the first of all is ready
    none is waited for. Raises what one of them raises.
    """
    tasks: list[asyncio.Future[T]] = [asyncio.ensure_future(work) for work in works]
    ready = asyncio.Event()

    async def minute() -> None:
        await ready.wait()
        await clock.sleep(HELD_UP_SECONDS)

    end = asyncio.ensure_future(minute())
    waiting: set[asyncio.Future[Any]] = set(tasks)
    try:
        while waiting and not end.done():
            done, _ = await asyncio.wait((*waiting, end), return_when=asyncio.FIRST_COMPLETED)
            came = [task for task in tasks if task in waiting & done]
            waiting -= done
            found = [is_ready(task.result()) for task in came]
            if first_is_enough and tasks[0] in came and found[0]:
                break
            if any(found):
                ready.set()
        return [task.result() if task.done() else None for task in tasks]
    finally:
        end.cancel()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, end, return_exceptions=True)
