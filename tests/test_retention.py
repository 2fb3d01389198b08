"""What no recent run uses goes, what one uses stays, and the file gets smaller."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from batchrank.calls import Answer
from batchrank.keys import short_hash
from batchrank.maintenance.retention import Collected, collect
from batchrank.store.lock import store_lock
from batchrank.store.records import Line, Run
from batchrank.store.store import Store
from batchrank.values import QueryStatus, RankedQuery
from tests.cli.running import batchrank

DAY = 86_400.0


class Kept:
    """A store whose runs began so many days ago, and what they made."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def fill(self, store: Store, *ages: float) -> None:
        """A run for each age: it ranks a query of its own and shows the one before it too."""
        last = b""
        noise = random.Random(1)
        for age in ages:
            run = await store.begin_run(b"job", {"model": "m"}, "in", "out", fresh=False)
            text = noise.randbytes(20_000).hex()
            numbers = [
                await store.add_answer(f"{run.id} {n}".encode(), run.id, Answer(text))
                for n in range(2)
            ]
            key = await self._rank(store, run, numbers[:1])
            lines = [Line(0, 1, short_hash(f"q{run.id}"), key)]
            if last:
                lines.append(Line(1, 2, short_hash(f"q{run.id - 1}"), last))
            await store.add_lines(run.id, lines)
            await store.end_run(run.id, 0, {"queries": {"ok": len(lines)}})
            await store.write_rows(
                "UPDATE runs SET started = ? WHERE id = ?", [(time.time() - age * DAY, run.id)]
            )
            last = key

    async def _rank(self, store: Store, run: Run, numbers: list[int]) -> bytes:
        key = f"ranking {run.id}".encode()
        ranked = RankedQuery(f"q{run.id}", "", ("a",), (None,), (0,), QueryStatus.OK)
        ranked = replace(ranked, answers=tuple(numbers))
        await store.add_ranking(key, run.job, ranked, retry=False)
        return key

    def column(self, sql: str) -> list[object]:
        """One column of what is in the file."""
        with closing(sqlite3.connect(self.path)) as store:
            return [row[0] for row in store.execute(sql)]

    async def collected(self, days: float, *, dry_run: bool = False) -> Collected:
        """What a collection of runs older than so many days found."""
        return await collect(self.path, time.time() - days * DAY, dry_run=dry_run)


async def kept(path: Path, *ages: float) -> Kept:
    """A store with runs of these ages in days."""
    found = Kept(path)
    store = await Store.open(path, create=True)
    await found.fill(store, *ages)
    await store.close()
    return found


async def test_only_what_no_recent_run_uses_goes(tmp_path: Path) -> None:
    store = await kept(tmp_path / "s.sqlite", 40, 35, 20, 1)

    found = await store.collected(30)

    assert (found.runs, found.lines, found.rankings, found.answers) == (2, 3, 1, 3)
    assert store.column("SELECT id FROM runs") == [3, 4]
    assert store.column("SELECT DISTINCT run FROM lines") == [3, 4]
    # Run 3 shows the ranking of run 2, which rests on the third answer.
    assert store.column("SELECT key FROM rankings ORDER BY key") == [
        b"ranking 2",
        b"ranking 3",
        b"ranking 4",
    ]
    assert store.column("SELECT id FROM answers") == [3, 5, 6, 7, 8]


async def test_the_space_is_given_back(tmp_path: Path) -> None:
    store = await kept(tmp_path / "s.sqlite", 40, 35, 20, 1)

    found = await store.collected(30)

    assert found.after == store.path.stat().st_size
    assert found.before - found.after >= 3 * 40_000
    assert found.content >= 3 * 40_000


async def test_a_dry_run_foretells_and_touches_nothing(tmp_path: Path) -> None:
    store = await kept(tmp_path / "s.sqlite", 40, 35, 20, 1)
    before = store.path.read_bytes()

    foretold = await store.collected(30, dry_run=True)

    assert store.path.read_bytes() == before
    done = await store.collected(30)
    assert foretold == replace(done, after=done.before)
    nothing = await store.collected(30)
    assert (nothing.runs, nothing.rankings, nothing.before) == (0, 0, nothing.after)


async def test_the_latest_run_stays_however_old(tmp_path: Path) -> None:
    store = await kept(tmp_path / "s.sqlite", 400, 300)

    await store.collected(30)

    assert store.column("SELECT id FROM runs") == [2]
    assert store.column("SELECT count(*) FROM rankings") == [2]


async def test_a_store_without_runs_has_nothing_old(tmp_path: Path) -> None:
    store = await kept(tmp_path / "s.sqlite")

    assert (await store.collected(0)).runs == 0


def test_nothing_is_removed_while_a_run_is_on(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    with closing(sqlite3.connect(path)):
        path.touch()
    with store_lock(path):
        refused = batchrank("gc", "--older-than", "30d", "--store", path)

    assert refused.code == 1
    assert "is in use by process" in refused.err


@pytest.mark.parametrize("flags", [(), ("--dry-run",), ("--json",)])
def test_the_command_says_what_it_did(tmp_path: Path, flags: tuple[str, ...]) -> None:
    path = tmp_path / "s.sqlite"
    asyncio.run(kept(path, 40, 1))

    told = batchrank("gc", "--older-than", "30d", "--store", path, *flags)

    if "--json" in flags:
        assert told.json["answers"] == 1
    else:
        verb = b"would remove" if flags else b"removed"
        assert told.out.startswith(verb + b" 1 runs, 1 lines, 0 rankings and 1 answers")
        assert (b"now" in told.out) is (flags == ())


def test_an_age_that_is_none_is_refused(tmp_path: Path) -> None:
    assert batchrank("gc", "--older-than", "old", "--store", tmp_path / "s").code == 2
