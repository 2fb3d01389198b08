"""One query of a run: its row, and every window behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import orjson

from batchrank.formats.rows import encode_jsonl
from batchrank.ranking.replay import Replayed, replay
from batchrank.results.writing import make_row
from batchrank.store.records import Run
from batchrank.store.store import Store
from batchrank.values import RankedQuery

Inspected = tuple[int, RankedQuery, list[Replayed]]
"""A line of the input, its outcome, its windows in the order in which they were asked."""


async def inspected(
    store: Store, run: Run, lines: Sequence[tuple[int, RankedQuery]]
) -> list[Inspected]:
    """Lines of a run with their windows. Raises StoreError."""
    return [(line, ranked, await replay(ranked, run.settings, store)) for line, ranked in lines]


def as_document(found: Inspected, settings: dict[str, Any], top_k: int | None) -> dict[str, Any]:
    """The row, its `line`, and its windows as `asked`; at most `top_k` documents of the ranking."""
    line, ranked, windows = found
    row = orjson.loads(encode_jsonl(make_row(line, ranked, settings), top_k))
    return {**row, "line": line, "asked": [asdict(window) for window in windows]}
