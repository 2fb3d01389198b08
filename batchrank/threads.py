"""Runs what may block for ever, a silent pipe or a lost cluster, in threads nothing waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import Generic, TypeVar

T = TypeVar("T")


async def in_daemon_thread(work: Callable[[], T]) -> T:
    """Like asyncio.to_thread, but a thread that waits for ever doesn't keep the process.

    Neither the loop nor the interpreter waits for a daemon thread at its end.
    """
    loop = asyncio.get_running_loop()
    ended = loop.create_future()
    result: Future[T] = Future()

    def call() -> None:
        try:
            result.set_result(work())
        except Exception as error:  # whatever it is, it is raised where it is awaited
            result.set_exception(error)
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(ended.cancel)

    Thread(target=call, daemon=True).start()
    await asyncio.wait([ended])
    return result.result()


class ReadAhead(Generic[T]):
    """What `work` returns, call by call until None: the next is got while the last is used."""

    def __init__(self, work: Callable[[], T | None]) -> None:
        self._work = work
        self._coming: asyncio.Task[T | None] | None = None

    async def next(self) -> T | None:
        """The next, or None behind the last; raises what `work` raises."""
        got = await (self._coming or self._begun())
        if got is None:
            self._coming = None
        else:
            self._coming = self._begun()
            await asyncio.sleep(0)  # it begins now, not when this task waits for something
        return got

    def close(self) -> None:
        """Wait for no more."""
        if self._coming is not None:
            self._coming.cancel()

    def _begun(self) -> asyncio.Task[T | None]:
        task = asyncio.create_task(in_daemon_thread(self._work))
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        return task
