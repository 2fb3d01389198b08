"""A connection to a SQLite file: writes that come together share a transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Self

import aiosqlite

from batchrank.store.batcher import Batcher
from batchrank.store.connection import store_errors

_CHUNK = 500
"""Parameters of one IN list."""

_Write = tuple[str, list[tuple[object, ...]]]
"""A statement and the rows to run it with."""


class Database:
    """Statements and their rows, whatever they mean; for the modules of this package.

    Every method raises StoreError. A write is durable when its method returns. Leaving the context
    closes the file.
    """

    def __init__(self, path: Path, connection: aiosqlite.Connection) -> None:
        self.path = path
        self._connection = connection
        self._writes: Batcher[_Write, None] = Batcher(self._commit)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Finish what is queued and close the file."""
        await self._writes.drain()
        with store_errors(self.path):
            await self._connection.close()

    async def write_rows(
        self, sql: str, rows: list[tuple[object, ...]], *, patient: bool = False
    ) -> None:
        """Run a statement with each of `rows`, durably; see `Batcher.submit`."""
        await self._writes.submit((sql, rows), patient=patient)

    async def write(
        self, sql: str, parameters: tuple[object, ...], *, patient: bool = False
    ) -> None:
        """Run a statement, durably; see `Batcher.submit`."""
        await self.write_rows(sql, [parameters], patient=patient)

    async def _commit(self, writes: Sequence[_Write]) -> Sequence[None]:
        with store_errors(self.path):
            try:
                # Those that wait together wait for none of each other: their order is free.
                by_statement: dict[str, list[tuple[object, ...]]] = {}
                for sql, rows in writes:
                    by_statement.setdefault(sql, []).extend(rows)
                for sql, rows in by_statement.items():
                    await self._connection.executemany(sql, rows)
                await self._connection.commit()
            except BaseException:
                await self._connection.rollback()
                raise
        return [None] * len(writes)

    async def select(self, sql: str, parameters: Sequence[object]) -> list[Any]:
        """All rows of a query."""
        with store_errors(self.path):
            return list(await self._connection.execute_fetchall(sql, parameters))

    async def select_in(self, sql: str, values: Iterable[object], *parameters: object) -> list[Any]:
        """Rows of `sql`, which ends on the name of a column, for each of `values` in it."""
        rows: list[Any] = []
        remaining = iter(values)
        while chunk := list(islice(remaining, _CHUNK)):
            marks = ",".join("?" * len(chunk))
            rows += await self.select(f"{sql} IN ({marks})", (*parameters, *chunk))
        return rows

    async def shrink(self, *, vacuum: bool) -> int:
        """Bring all into the one file, with `vacuum` as small as it can be; the file's bytes.

        Takes as much room again as the store while it lasts.
        """
        with store_errors(self.path):
            if vacuum:
                await self._connection.execute("VACUUM")
            await self._connection.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)")
            return (await asyncio.to_thread(self.path.stat)).st_size
