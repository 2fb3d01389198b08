"""The shards of an input that stores hold, and whether they belong together."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import orjson

from batchrank.errors import UsageError
from batchrank.formats.wording import quoted
from batchrank.spec.shard import parse_shard
from batchrank.store.connection import store_errors
from batchrank.values import Shard


@dataclass(frozen=True, slots=True)
class Part:
    """The last run about one shard that a store holds; `lines` is None where it read not all."""

    store: Path
    run: int
    shard: Shard
    job: bytes
    settings: dict[str, object]
    fresh_since: int
    input: str
    started: float
    exit: int | None
    lines: int | None
    reasons: tuple[str, ...]


def existing(path: Path) -> str:
    """The address by which SQLite opens a store that is there, to read it.

    Who may not write could not remove the files beside it that every reader makes.
    """
    return f"file:{quote(os.fsencode(path.absolute()))}?mode=rw"


def parts_of(path: Path) -> list[Part]:
    """The last run of each shard in the store, of the job and the split of its last run.

    Raises UsageError where there is no run, StoreError.
    """
    with store_errors(path), closing(sqlite3.connect(existing(path), uri=True)) as store:
        rows = store.execute(
            "SELECT runs.id, ifnull(shard, '0/1'), key, settings, fresh_since, input, started, "
            "exit, lines, summary FROM runs JOIN jobs ON jobs.id = runs.job WHERE runs.id IN "
            "(SELECT max(id) FROM runs WHERE job = (SELECT job FROM runs ORDER BY id DESC LIMIT 1) "
            "GROUP BY shard) ORDER BY runs.id DESC"
        ).fetchall()
    if not rows:
        raise UsageError(f"store {path} holds no run: make one with `batchrank run --shard`")
    found = []
    for run, shard, key, settings, fresh_since, source, *ending in rows:
        started, exit_code, lines, summary = ending
        job = (parse_shard(shard), key, orjson.loads(settings), fresh_since, source)
        reasons = tuple(orjson.loads(summary)["reasons"]) if summary else ()
        found.append(Part(path, run, *job, started, exit_code, lines, reasons))
    return [part for part in found if part.shard.count == found[0].shard.count]


def check_parts(parts: Sequence[Part]) -> None:
    """See that parts can be joined; raises UsageError."""
    first = parts[0]
    holders: dict[int, Path] = {}
    for part in parts:
        names = f"{quoted(first.store)} and {quoted(part.store)}"
        if part.job != first.job:
            raise UsageError(
                f"{names} are of different jobs: {_differences(first, part)}; run all shards with "
                "the same settings, model and batchrank"
            )
        if part.shard.count != first.shard.count:
            raise UsageError(
                f"{names} do not belong together: the input was split into {first.shard.count} "
                f"shards for one and into {part.shard.count} for the other"
            )
        if (other := holders.setdefault(part.shard.index, part.store)) != part.store:
            raise UsageError(
                f"{quoted(other)} and {quoted(part.store)} both hold shard {part.shard}: leave one "
                "of them out"
            )


def _differences(one: Part, other: Part) -> str:
    names = sorted(one.settings.keys() | other.settings.keys())
    pairs = ((name, one.settings.get(name), other.settings.get(name)) for name in names)
    return "; ".join(
        f"{name} is {orjson.dumps(mine).decode()[:200]} and {orjson.dumps(its).decode()[:200]}"
        for name, mine, its in pairs
        if mine != its
    )
