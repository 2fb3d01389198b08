"""Waits for a server's first answer: while its model may load, but not for one that hangs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from batchrank.backends.base import Backend
from batchrank.calls import Prompt, ServerInfo
from batchrank.clock import Clock
from batchrank.errors import ServerError, UnavailableError

TOLD_SECONDS = 10.0
_SILENT_SECONDS = 60.0
"""A word takes seconds even on a processor, and a queue can be seen."""
_LOADED = frozenset(("vllm", "sglang", "tei"))
"""Kinds that listen only once their model is loaded."""
_QUEUE = 2
"""So many wait where it is not we alone, for a server that does not say how many slots it has."""


async def wake(
    backend: Backend,
    info: ServerInfo,
    asked: Prompt,
    loading: float,
    busy: float,
    waits: Callable[[str], None],
    clock: Clock,
) -> None:
    """Send `asked` and wait until the server says anything to it, be it an error.

    One that may load its model for the first request has `loading` seconds, as a client that leaves
    can make it give that up. Any other hangs where it is silent for a minute (vLLM answers GETs
    then, its issue 39863), unless others wait there too: then it has `busy` seconds. After some
    seconds `waits` is told what is waited for. Raises UnavailableError where the time is up.
    """
    has_loaded = _has_loaded(info)
    most = max(busy, _SILENT_SECONDS) if has_loaded else loading
    answer = asyncio.ensure_future(_any_answer(backend, asked, most))
    try:
        if await within(TOLD_SECONDS, answer, clock):
            return
        shown, why = (_SILENT_SECONDS, "") if has_loaded else (most, ": it may load its model")
        waits(f"waiting up to {shown:g} s for the first answer of {backend.url}{why}")
        left = _SILENT_SECONDS - TOLD_SECONDS
        while has_loaded and not await within(left, answer, clock):
            if not await _is_busy(backend, info):
                raise UnavailableError(
                    f"{backend.url} takes requests and answered none within {_SILENT_SECONDS:g} s, "
                    "though nobody else waits there: it hangs, restart it."
                )
            left = _SILENT_SECONDS
        await answer
    finally:
        answer.cancel()
        await asyncio.wait([answer])


def _has_loaded(info: ServerInfo) -> bool:
    """Whether its model is loaded: llama.cpp has slots then, its router has none."""
    return info.kind in _LOADED or (info.kind == "llama.cpp" and info.slots is not None)


async def _any_answer(backend: Backend, asked: Prompt, seconds: float) -> None:
    try:
        await backend.send(backend.encode(asked), seconds)
    except UnavailableError as error:
        if error.timed_out:
            raise
    except (ServerError, ValueError):
        pass  # it is awake; what it can't do, the preflight says


async def within(seconds: float, answer: asyncio.Future[Any], clock: Clock) -> bool:
    """Whether the answer comes in that time; raises what `answer` does."""
    sleeping = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait((answer, sleeping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        sleeping.cancel()
    if answer.done():
        answer.result()
    return answer.done()


async def _is_busy(backend: Backend, info: ServerInfo) -> bool:
    try:
        crowd = await backend.crowd(0)
    except ServerError:
        return False
    return (crowd or 0) >= (info.slots or _QUEUE)
