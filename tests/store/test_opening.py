"""Opening a store: a new one is private, and what is no store of ours is refused untouched."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from batchrank.calls import Answer
from batchrank.errors import StoreError, UsageError
from batchrank.store.schema import APPLICATION_ID, VERSION
from batchrank.store.store import Store


def names(path: Path) -> list[str]:
    """The files beside a store, itself included."""
    return sorted(file.name for file in path.parent.iterdir())


def content(path: Path) -> bytes:
    """What is in the file, none of which opening may change."""
    return path.read_bytes()


def write(path: Path, data: bytes) -> None:
    """Make the file hold `data`."""
    path.write_bytes(data)


async def refused(path: Path, message: str, *, create: bool = True) -> None:
    """Opening raises an error that says `message`, and leaves no thread behind."""
    with pytest.raises((StoreError, UsageError), match=message):
        await Store.open(path, create=create)
    for thread in threading.enumerate():
        if "_connection_worker_thread" in thread.name:
            await asyncio.to_thread(thread.join, 10)
            assert not thread.is_alive(), "the process would never end"


async def test_a_new_store_is_for_its_owner_alone(path: Path) -> None:
    previous = os.umask(0)
    try:
        store = await Store.open(path, create=True)
        await store.add_answer(b"k", 1, Answer("private"))
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
        await store.close()
    finally:
        os.umask(previous)

    assert modes == dict.fromkeys(("jobs.sqlite", "jobs.sqlite-wal", "jobs.sqlite-shm"), 0o600)


async def test_a_new_store_says_what_it_is(path: Path) -> None:
    await (await Store.open(path, create=True)).close()

    with closing(sqlite3.connect(path)) as other:
        assert other.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert other.execute("PRAGMA user_version").fetchone() == (VERSION,)
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)


async def test_a_store_that_is_not_there_is_only_made_on_request(path: Path) -> None:
    await refused(path, "there is no store at", create=False)

    assert names(path) == []


async def test_an_empty_file_becomes_a_store(path: Path) -> None:
    write(path, b"")
    await asyncio.to_thread(path.chmod, 0o644)

    store = await Store.open(path, create=True)

    assert await store.find_answer(b"k") is None
    assert stat.S_IMODE((await asyncio.to_thread(path.stat)).st_mode) == 0o600
    await store.close()


@pytest.mark.parametrize("journal", ["delete", "wal"])
async def test_another_program_s_database_is_refused_untouched(path: Path, journal: str) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA journal_mode = {journal}")
        other.execute("CREATE TABLE bookmarks (url TEXT)")
        other.commit()
    before = content(path)

    await refused(path, "SQLite file of another program")

    assert content(path) == before
    assert names(path) == [path.name]


@pytest.mark.parametrize(
    "data", [b"x", b'{"query": "this is an input"}\n' * 100, b"SQLite format 2\0" + bytes(100)]
)
async def test_another_file_is_refused_untouched(path: Path, data: bytes) -> None:
    write(path, data)

    await refused(path, "is not a batchrank store")

    assert content(path) == data
    assert names(path) == [path.name]


async def test_a_newer_store_is_refused_untouched(path: Path) -> None:
    await (await Store.open(path, create=True)).close()
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA user_version = {VERSION + 1}")
    before = content(path)

    await refused(path, "written by a newer batchrank")

    assert content(path) == before


async def test_a_folder_is_refused(path: Path) -> None:
    await refused(path.parent, "is a folder")


async def test_a_folder_that_is_not_there_is_refused(path: Path) -> None:
    await refused(path / "deep" / "s.sqlite", "nor a folder for it")


@pytest.mark.parametrize("create", [True, False])
async def test_a_damaged_store_is_refused_with_what_to_do(path: Path, create: bool) -> None:
    await (await Store.open(path, create=True)).close()
    whole = content(path)
    write(path, whole[:100] + b"\xff" * (len(whole) - 100))

    await refused(path, "move the file away to start anew", create=create)


async def test_a_store_without_its_tables_is_refused(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        other.execute(f"PRAGMA user_version = {VERSION}")

    await refused(path, "no such table")


async def test_a_store_on_a_read_only_disk_is_read_as_it_is(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await Store.open(path, create=True)
    await store.add_answer(b"k", 1, Answer("kept"))
    await store.close()
    before, beside = content(path), names(path)
    monkeypatch.setattr("batchrank.store.connection._is_on_read_only_disk", lambda _: True)

    store = await Store.open(path)
    found = await store.find_answer(b"k")
    assert (names(path), content(path)) == (beside, before)
    await store.close()
    assert found is not None
    assert found.answer.text == "kept"

    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA user_version = {VERSION - 1}")
    await refused(path, "older batchrank and is on a read-only disk", create=False)
    write(path.with_name(f"{path.name}-wal"), b"something")
    await refused(path, "did not close it: copy it", create=False)


async def test_a_second_connection_takes_no_lock_from_the_first(tmp_path: Path) -> None:
    """Else another process, `batchrank status` for one, takes itself for the last and removes the
    WAL of a store that is being written."""
    path = tmp_path / "s.sqlite"
    first = await Store.open(path, create=True)
    await first.begin_run(b"job".ljust(20), {}, "in", "out", fresh=False)
    await (await Store.open(path)).close()
    look = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT * FROM runs').close()"
    looking = [sys.executable, "-c", look, str(path)]
    await asyncio.to_thread(subprocess.run, looking, check=True)
    assert await asyncio.to_thread(path.with_name("s.sqlite-wal").exists)
    await first.end_run(1, 0, {})
    assert (await first.run(1)).exit == 0
    await first.close()
