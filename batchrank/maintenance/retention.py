"""Removes from a store what no recent run uses, and gives the space back."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from batchrank.store.packing import unpack
from batchrank.store.store import Store

_CHUNK = 500
_IS_USED = "(made_by >= ? OR key IN (SELECT ranking FROM lines WHERE run >= ?))"


@dataclass(frozen=True, slots=True)
class Collected:
    """Rows that were removed, or would be, and bytes: `content` of them, of the file around it."""

    runs: int
    lines: int
    rankings: int
    answers: int
    content: int
    before: int
    after: int


async def collect(path: Path, cutoff: float, *, dry_run: bool) -> Collected:
    """Remove what only runs use that began before `cutoff`, in seconds since the epoch.

    A run is kept whole, with all it rests on, or not at all; the latest one always is. What a kept
    run paid for stays too. With `dry_run` nothing is removed. Whoever calls holds the lock of the
    store, so that no run is on. Raises StoreError.
    """
    async with await Store.open(path) as store:
        ((first,),) = await store.select(
            "SELECT min(id) FROM runs WHERE started >= ? OR id = (SELECT max(id) FROM runs)",
            (cutoff,),
        )
        first = first or 0  # of a store without runs nothing is old
        await _mark_used_answers(store, first)
        doomed = {
            "runs": ("id < ?", (first,), "0"),
            "lines": ("run < ?", (first,), "0"),
            "rankings": (f"NOT {_IS_USED}", (first, first), "length(packed)"),
            "answers": (
                "run < ? AND id NOT IN (SELECT id FROM temp.used)",
                (first,),
                "length(text) + length(reasoning) + ifnull(length(scored), 0)",
            ),
        }
        counts = {}
        content = 0
        for table, (which, parameters, length) in doomed.items():
            ((counts[table], size),) = await store.select(
                f"SELECT count(*), ifnull(sum({length}), 0) FROM {table} WHERE {which}",  # noqa: S608
                parameters,
            )
            content += size
        before = after = await store.shrink(vacuum=False)
        if not dry_run and any(counts.values()):
            # Rankings go before the lines that say which of them are used.
            for table in ("answers", "rankings", "lines", "runs"):
                which, parameters, _ = doomed[table]
                await store.write_rows(f"DELETE FROM {table} WHERE {which}", [parameters])  # noqa: S608
            after = await store.shrink(vacuum=True)
        return Collected(**counts, content=content, before=before, after=after)


async def _mark_used_answers(store: Store, first: int) -> None:
    """Write the answers that used rankings rest on into a table that goes with the connection."""
    await store.write_rows("CREATE TEMP TABLE used (id INTEGER PRIMARY KEY)", [()])
    after = 0
    while rows := await store.select(
        f"SELECT rowid, packed FROM rankings WHERE rowid > ? AND {_IS_USED} ORDER BY rowid LIMIT ?",  # noqa: S608
        (after, first, first, _CHUNK),
    ):
        after, _ = rows[-1]
        numbers = await asyncio.to_thread(_numbers, [packed for _, packed in rows])
        await store.write_rows("INSERT OR IGNORE INTO temp.used VALUES (?)", numbers)


def _numbers(packed: list[bytes]) -> list[tuple[object, ...]]:
    return [(number,) for one in packed for number in unpack(one).answers]
