"""Runs what may block for ever, a silent pipe or a lost cluster, in threads nothing waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import TypeVar

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
