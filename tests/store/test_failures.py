"""A write that fails reaches everyone who waits for it, and nothing half-done stays."""

from __future__ import annotations

import asyncio
import resource
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from batchrank.calls import Answer, Usage
from batchrank.errors import StoreError
from batchrank.store.store import Store


async def limit_pages(store: Store, pages: int) -> None:
    """Let the database grow to so many pages, as a full disk would."""
    await store._connection.execute(f"PRAGMA max_page_count = {pages}")


async def test_a_full_disk_reaches_every_caller(store: Store) -> None:
    await limit_pages(store, 1)
    big = Answer("x" * 100_000)

    outcomes = await asyncio.gather(
        *(store.add_answer(bytes([n]), 1, big) for n in range(5)), return_exceptions=True
    )

    assert [type(outcome) for outcome in outcomes] == [StoreError] * 5
    assert "free space on its disk" in str(outcomes[0])


async def test_a_limit_on_file_sizes_is_named(store: Store) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(StoreError, match=r"limit on file sizes \(`ulimit -f`\)"):
            await store.add_answer(b"big", 1, Answer("x" * 1_000_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    await store.add_answer(b"small", 1, Answer("y"))


async def test_a_batch_that_fails_leaves_nothing_and_the_next_succeeds(
    store: Store, path: Path
) -> None:
    await limit_pages(store, 1)
    outcomes = await asyncio.gather(
        store.add_answer(b"small", 1, Answer("y")),
        store.add_answer(b"big", 1, Answer("x" * 100_000)),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in outcomes] == [StoreError] * 2
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT count(*) FROM answers").fetchone() == (0,)

    await limit_pages(store, 10_000)

    assert await store.add_answer(b"big", 1, Answer("x" * 100_000)) > 0
    assert await store.find_answer(b"small") is None
    assert await store.find_answer(b"big") is not None


async def test_an_error_that_nobody_foresaw_reaches_every_caller_too(store: Store) -> None:
    too_large = Answer("x", usage=Usage(2**64, 0))

    outcomes = await asyncio.gather(
        store.add_answer(b"1", 1, too_large),
        store.add_answer(b"2", 1, Answer("fine")),
        return_exceptions=True,
    )

    assert [type(outcome) for outcome in outcomes] == [OverflowError] * 2
    assert await store.add_answer(b"2", 1, Answer("fine")) > 0


async def test_a_table_that_is_gone_reaches_every_reader(store: Store) -> None:
    await store._connection.execute("DROP TABLE answers")

    outcomes = await asyncio.gather(
        store.find_answer(b"1"), store.find_answer(b"2"), return_exceptions=True
    )

    assert [type(outcome) for outcome in outcomes] == [StoreError] * 2
