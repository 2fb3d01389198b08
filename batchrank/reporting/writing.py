"""Writes the report of a run, whole or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from batchrank.errors import UsageError
from batchrank.formats.atomic import AtomicFile
from batchrank.reporting.facts import Facts, QueryFacts
from batchrank.reporting.gathering import Wanted, gather

_LARGEST = 1_900_000
"""Bytes of a page."""


async def write_report(wanted: Wanted, output: str) -> int:
    """Write the page about a run to `output` (`-` for stdout); its size in bytes.

    Raises UsageError as `gather` does and where matplotlib is not installed, StoreError, DiskError.
    """
    render = await asyncio.to_thread(_renderer)
    facts = await gather(wanted)
    return await asyncio.to_thread(_write, render, facts, output)


def _renderer() -> Callable[[Facts], str]:
    try:
        from batchrank.reporting.page import render  # noqa: PLC0415 - an extra, slow to import
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("matplotlib"):
            raise
        raise UsageError("the report needs matplotlib: pip install 'batchrank[report]'") from error
    return render


def _write(render: Callable[[Facts], str], facts: Facts, output: str) -> int:
    page = render(facts).encode()
    while len(page) > _LARGEST and any(query.windows for query in facts.queries):
        # Docids and answers may be as long as they like; the figures above them are what counts.
        facts = replace(facts, queries=tuple(map(_with_fewer_windows, facts.queries)))
        page = render(facts).encode()
    with AtomicFile(output) as file:
        file.write(page)
    return len(page)


def _with_fewer_windows(query: QueryFacts) -> QueryFacts:
    kept = len(query.windows) // 2
    left = query.windows_left + len(query.windows) - kept
    return replace(query, windows=query.windows[:kept], windows_left=left)
