"""Runs a coroutine on the fastest event loop there is."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_loop(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, on uvloop except on Windows, which has none."""
    if sys.platform == "win32":
        return asyncio.run(work)
    import uvloop  # noqa: PLC0415 - absent on Windows

    return uvloop.run(work)
