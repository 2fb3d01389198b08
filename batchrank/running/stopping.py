"""The reason to stop a run, and waiting that ends as soon as there is one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from batchrank.errors import BatchrankError, RejectedError, StoppedError

T = TypeVar("T")

_ORDERLY = (StoppedError, RejectedError)
"""Reasons to stop that are an outcome with a report, not a failure."""


class Stopping:
    """Whether a run is to stop, and why."""

    def __init__(self) -> None:
        self.reason: BatchrankError | None = None
        self._event = asyncio.Event()

    @property
    def is_failure(self) -> bool:
        """Whether the run failed, as against stopped in good order or not stopped at all."""
        return self.reason is not None and not isinstance(self.reason, _ORDERLY)

    def stop(self, reason: BatchrankError) -> bool:
        """Give a reason to stop; True the first time."""
        # The first reason tells why, and later ones follow from it; only a failure weighs more.
        if self.reason is None or (not self.is_failure and not isinstance(reason, _ORDERLY)):
            self.reason = reason
        first = not self._event.is_set()
        self._event.set()
        return first

    async def unless(self, work: Awaitable[T]) -> T:
        """Await `work`, or raise the reason to stop as soon as there is one."""
        task = asyncio.ensure_future(work)
        if self.reason is not None:
            task.cancel()
            raise self.reason
        stopping = asyncio.ensure_future(self._event.wait())
        try:
            await asyncio.wait((task, stopping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            if not task.done():
                task.cancel()
        if self.reason is not None and not task.done():
            raise self.reason
        return await task
