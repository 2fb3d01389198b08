"""Older stores are brought up to date and kept; a busy one is waited for, or named."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import aiosqlite
import pytest

from batchrank.calls import Answer
from batchrank.errors import StoreError
from batchrank.store import connection
from batchrank.store.records import Totals
from batchrank.store.schema import APPLICATION_ID, MIGRATIONS, VERSION
from batchrank.store.store import Store
from batchrank.values import QueryStatus, RankedQuery, Tally
from tests.store.earlier import packed_by_version_1

RANKED = RankedQuery("q1", "old", ("a", "b"), (None, None), (1, 0), QueryStatus.OK, Tally(ok=1))


def old_store(path: Path, version: int = 1) -> None:
    """A store as an earlier version made it, with one finished run."""
    with closing(sqlite3.connect(path)) as store:
        store.executescript(
            f"PRAGMA application_id = {APPLICATION_ID}; {''.join(MIGRATIONS[:version])} "
            f"PRAGMA user_version = {version};"
        )
        store.execute(
            "INSERT INTO jobs (id, key, settings) VALUES (1, x'01', '{\"model\": \"m\"}')"
        )
        store.execute(
            "INSERT INTO runs (id, job, input, output, started, ended, exit, summary) "
            "VALUES (1, 1, 'in', 'out', 5.0, 6.0, 0, '{}')"
        )
        store.execute(
            "INSERT INTO lines (run, position, line, qid, ranking) VALUES (1, 0, 1, 77, x'02')"
        )
        later = (", made_by, base", ", 8, 9") if version >= 3 else ("", "")
        store.execute(
            "INSERT INTO rankings (key, job, qid, retry, status, ok, repaired, fallback, error, "
            f"thin, unmoved, packed{later[0]}) "
            f"VALUES (x'02', 1, 77, 1, 'ok', 2, 3, 4, 5, 6, 7, ?{later[1]})",
            (packed_by_version_1(RANKED),),
        )
        store.commit()


def ranking_in(store: sqlite3.Connection) -> dict[str, object]:
    """The columns of the one ranking."""
    found = store.execute("SELECT * FROM rankings")
    names = [name for name, *_ in found.description]
    return dict(zip(names, found.fetchone(), strict=True))


async def contents(path: Path) -> tuple[int | None, float, float | None, object, Totals]:
    store = await Store.open(path)
    try:
        run = await store.run()
        rows = [row async for chunk in store.rows(run.id) for row in chunk]
        return run.exit, run.started, run.deadline, rows, await store.totals(run.id)
    finally:
        await store.close()


def test_an_older_store_is_migrated_and_its_file_kept(path: Path) -> None:
    old_store(path)
    before = path.read_bytes()
    exit_code, started, deadline, rows, totals = asyncio.run(contents(path))
    assert (exit_code, started, deadline) == (0, 5.0, None)
    assert rows == [(1, RANKED)]
    kept = Path(f"{path}.v1")
    assert kept.stat().st_mode & 0o077 == 0
    with closing(sqlite3.connect(kept)) as old:
        assert old.execute("PRAGMA user_version").fetchone() == (1,)
        assert old.execute("SELECT count(*) FROM rankings").fetchone() == (1,)
    assert len(before) == kept.stat().st_size
    assert asyncio.run(contents(path))[4] == totals


@pytest.mark.parametrize("version", range(1, VERSION))
def test_a_ranking_of_each_earlier_version_is_kept(path: Path, version: int) -> None:
    old_store(path, version)
    with closing(sqlite3.connect(path)) as store:
        before = ranking_in(store)
    _, _, _, rows, totals = asyncio.run(contents(path))
    assert rows == [(1, RANKED)]
    assert totals.tally == Tally(2, 3, 4, 5, 6, 7)
    with closing(sqlite3.connect(path)) as store:
        assert ranking_in(store) == {"made_by": 0, "base": 0, "odd": ""} | before


async def test_a_migration_that_fails_changes_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await (await Store.open(path, create=True)).close()
    steps = (*MIGRATIONS, "CREATE TABLE later (x); CREATE TABLE jobs (x);")
    monkeypatch.setattr(connection, "MIGRATIONS", steps)
    monkeypatch.setattr(connection, "VERSION", len(steps))
    with pytest.raises(StoreError, match="already exists"):
        await Store.open(path)
    with closing(sqlite3.connect(path)) as store:
        assert store.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        found = store.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'later'").fetchone()
    assert found == (0,)


async def test_a_busy_store_is_waited_for(store: Store, path: Path) -> None:
    with closing(sqlite3.connect(path, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        writing = asyncio.create_task(store.add_answer(b"key", 1, Answer("kept")))
        await asyncio.sleep(0)
        assert not writing.done()
        other.rollback()
        await writing
    found = await store.find_answer(b"key")
    assert found is not None
    assert found.answer.text == "kept"


async def test_a_store_that_stays_busy_is_named_and_nothing_is_lost(
    store: Store, path: Path
) -> None:
    await store.select("PRAGMA busy_timeout = 1", ())
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="another program holds it"):
            await store.add_answer(b"key", 1, Answer("paid for"))
    await store.add_answer(b"key", 1, Answer("paid for"))


async def test_a_disk_that_can_not_have_a_wal_is_used_without(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = aiosqlite.connect

    def without_shared_memory(file: Path, **options: Any) -> aiosqlite.Connection:
        return plain(f"file:{file}?vfs=unix-dotfile", uri=True, **options)

    monkeypatch.setattr("batchrank.store.connection.aiosqlite.connect", without_shared_memory)
    store = await Store.open(path, create=True)
    try:
        assert await store.select("PRAGMA journal_mode", ()) == [("delete",)]
        assert await store.select("PRAGMA synchronous", ()) == [(2,)]  # FULL
        await store.add_answer(b"key", 1, Answer("kept"))
        assert await store.find_answer(b"key") is not None
    finally:
        await store.close()
