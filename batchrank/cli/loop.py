"""Runs a coroutine on the fastest event loop there is."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_FILES = 65_536
"""Open files that are asked for."""


def run_loop(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, on uvloop except on Windows, which has none."""
    if sys.platform == "win32":
        return asyncio.run(work)
    import resource  # noqa: PLC0415 - absent on Windows

    import uvloop  # noqa: PLC0415 - absent on Windows

    # A socket a call: shells allow 1,024 files by default, and the system far more.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return uvloop.run(work)
