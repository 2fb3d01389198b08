"""Runs a coroutine on the fastest event loop there is."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

from batchrank.errors import BatchrankError, FilesError

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
    before = gc.get_threshold()
    gc.freeze()  # what was imported stays
    gc.set_threshold(_COLLECT_EVERY)
    try:
        return _run(work)
    except (BatchrankError, OSError) as error:
        if FilesError.is_behind(error):
            raise FilesError from error
        raise
    finally:
        # Whoever called `main` in a process of his own has his collector back.
        gc.set_threshold(*before)
        gc.unfreeze()
        work.close()  # of one that never began


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
