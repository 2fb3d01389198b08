"""Runs a coroutine on the fastest event loop there is."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from batchrank.cli.early import INTERRUPTED, hear
from batchrank.errors import BatchrankError, FilesError, StoppedError

T = TypeVar("T")

_FILES = 65_536
"""Open files that are asked for."""
_COLLECT_EVERY = 50_000
"""Objects made before cycles are looked for: few are in one, and the default is 700."""
_FEWEST_FILES = 32
"""With fewer not even a store and one server can be open together."""


def run_loop(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, on uvloop except on Windows, which has none.

    Raises FilesError where too few files may be opened, now or later.
    """
    watched = _cancelled_by_signals(work)
    before = gc.get_threshold()
    gc.freeze()  # what was imported stays
    gc.set_threshold(_COLLECT_EVERY)
    try:
        return _run(watched)
    except (BatchrankError, OSError) as error:
        if FilesError.is_behind(error):
            raise FilesError from error
        raise
    finally:
        hear()
        # Whoever called `main` in a process of his own has his collector back.
        gc.set_threshold(*before)
        gc.unfreeze()
        watched.close()  # of one that never began
        work.close()


def soon(loop: asyncio.AbstractEventLoop, act: Callable[[], object]) -> None:
    """Let a loop `act` for a signal; one that is closed has nothing left to do."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(act)


async def _cancelled_by_signals(work: Coroutine[Any, Any, T]) -> T:
    """`work`, which a signal cancels and a second one ends at once, until it hears them itself."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    heard = False

    def cancel(_: signal.Signals) -> None:
        nonlocal heard
        heard = True
        hear()
        soon(loop, task.cancel)

    hear(cancel)
    try:
        return await work
    except asyncio.CancelledError:
        if heard:
            raise StoppedError(INTERRUPTED) from None
        raise


def _run(work: Coroutine[Any, Any, T]) -> T:
    if sys.platform == "win32":
        return asyncio.run(work)
    import resource  # noqa: PLC0415 - absent on Windows

    # A socket a call: shells allow 1,024 files by default, and the system far more.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    if wanted < _FEWEST_FILES:
        raise FilesError
    import uvloop  # noqa: PLC0415 - absent on Windows

    return uvloop.run(work)
