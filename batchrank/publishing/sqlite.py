"""Generations of cache entries in the tables of one SQLite file."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiosqlite

from batchrank.entries import FORMAT, SQLITE_APPLICATION_ID, Scheme
from batchrank.errors import StoppedError, TargetError, UsageError
from batchrank.formats.wording import quoted
from batchrank.publishing.target import (
    TOOK_OVER,
    Begun,
    Coverage,
    Entry,
    Generation,
    Header,
    Plan,
    Room,
    one_before,
)

_SCHEMA = f"""
BEGIN IMMEDIATE;
PRAGMA application_id = {SQLITE_APPLICATION_ID};
PRAGMA user_version = {FORMAT};
CREATE TABLE generations (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    state    TEXT NOT NULL,        -- current, kept, or next while it is written
    identity TEXT NOT NULL,        -- hash of what it is made from
    scheme   TEXT NOT NULL,        -- how keys are made
    source   TEXT NOT NULL,
    began    REAL NOT NULL,        -- seconds since the epoch, UTC
    position INTEGER NOT NULL,     -- of the last line that is written
    written  INTEGER NOT NULL,
    entries  INTEGER               -- when it was made current
);
CREATE UNIQUE INDEX one_current ON generations (state) WHERE state != 'kept';
CREATE TABLE entries (
    generation INTEGER NOT NULL,
    key        TEXT NOT NULL,
    value      TEXT NOT NULL,      -- JSON
    expires    REAL,               -- seconds since the epoch, NULL for never
    PRIMARY KEY (generation, key)
);
COMMIT;
"""
_LIVE = "(expires IS NULL OR expires > ?)"
_KEYS = 5000
"""Of the current generation, carried at once."""
_ROW_BYTES = 40


class SqliteTarget:
    """See `Target`."""

    def __init__(self, path: Path, now: Callable[[], float]) -> None:
        self.name = quoted(path)
        self._path = path
        self._now = now
        self._connection: aiosqlite.Connection | None = None
        self._next = 0
        self._position = -1

    async def current(self) -> Generation | None:
        """See `Target`."""
        if self._connection is None and not await asyncio.to_thread(self._path.exists):
            return None
        return await self._generation("state = 'current'", ())

    async def ready(self) -> Generation | None:
        """See `Target`."""
        return await self.current()

    async def room(self, plan: Plan) -> Room:
        """See `Target`; a full disk is noticed when it is full."""
        key = max((len(key) for key in plan.keys), default=0)
        return Room(round(plan.entries * (plan.value_bytes + key + _ROW_BYTES)))

    async def begin(self, header: Header) -> Begun:
        """See `Target`."""
        async with self._changing() as db:
            rows = await self._select(
                "SELECT id, began, position, written FROM generations "
                "WHERE state = 'next' AND identity = ?",
                (header.identity,),
            )
            if rows:
                begun = Begun(*rows[0])
            else:
                began = self._now()
                await self._drop(db, "state = 'next'")
                cursor = await db.execute(
                    "INSERT INTO generations VALUES (NULL, 'next', ?, ?, ?, ?, -1, 0, NULL)",
                    (header.identity, str(header.scheme), header.source, began),
                )
                assert cursor.lastrowid is not None
                begun = Begun(cursor.lastrowid, began)
        self._next, self._position = begun.number, begun.position
        return begun

    async def write(self, entries: Sequence[Entry], position: int) -> int:
        """See `Target`."""
        rows = [(self._next, key, value.decode(), expires) for key, value, expires in entries]
        async with self._changing() as db:
            await self._see_that_it_is_ours()
            cursor = await db.executemany("INSERT OR IGNORE INTO entries VALUES (?, ?, ?, ?)", rows)
            await db.execute(
                "UPDATE generations SET position = ?, written = written + ? WHERE id = ?",
                (position, cursor.rowcount, self._next),
            )
        self._position = position
        rows = await self._select("SELECT written FROM generations WHERE id = ?", (self._next,))
        return int(rows[0][0])

    async def carry(self, after: str, *, copy: bool) -> tuple[str, Coverage]:
        """See `Target`."""
        now = self._now()
        async with self._changing() as db:
            await self._see_that_it_is_ours()
            found = await self._select(
                "SELECT key FROM entries WHERE generation = "  # noqa: S608 - fixed
                "(SELECT id FROM generations WHERE state = 'current') "
                f"AND key > ? AND {_LIVE} ORDER BY key LIMIT ?",
                (after, now, _KEYS),
            )
            if not found:
                return "", Coverage(0, 0)
            first, last = found[0][0], found[-1][0]
            if copy:
                await db.execute(
                    "INSERT OR IGNORE INTO entries "  # noqa: S608 - fixed
                    "SELECT ?, key, value, expires FROM entries "
                    "WHERE generation = (SELECT id FROM generations WHERE state = 'current') "
                    f"AND key BETWEEN ? AND ? AND {_LIVE}",
                    (self._next, first, last, now),
                )
            ((covered,),) = await self._select(
                "SELECT count(*) FROM entries AS old JOIN entries AS new "
                "ON new.generation = ? AND new.key = old.key WHERE old.generation = "
                "(SELECT id FROM generations WHERE state = 'current') "
                "AND old.key BETWEEN ? AND ? AND (old.expires IS NULL OR old.expires > ?)",
                (self._next, first, last, now),
            )
        return last, Coverage(len(found), covered)

    async def switch(self) -> int:
        """See `Target`."""
        async with self._changing() as db:
            await self._see_that_it_is_ours()
            ((entries,),) = await self._select(
                "SELECT count(*) FROM entries WHERE generation = ?", (self._next,)
            )
            # What was rolled back from must not come back by another rollback.
            await self._drop(
                db,
                "state = 'kept' AND id > (SELECT id FROM generations WHERE state = 'current')",
            )
            await db.execute("UPDATE generations SET state = 'kept' WHERE state = 'current'")
            await db.execute(
                "UPDATE generations SET state = 'current', entries = ? WHERE id = ?",
                (entries, self._next),
            )
        return int(entries)

    async def discard(self) -> None:
        """See `Target`."""
        async with self._changing() as db:
            await self._drop(db, "state = 'next' AND id = ?", self._next)

    async def prune(self, keep: int) -> None:
        """See `Target`."""
        async with self._changing() as db:
            await self._drop(
                db,
                "state = 'kept' AND id NOT IN (SELECT id FROM generations WHERE state = 'kept' AND "
                "id < (SELECT id FROM generations WHERE state = 'current') "
                "ORDER BY id DESC LIMIT ?)",
                keep - 1,
            )
        with self._errors():
            db = await self._open()
            await db.execute_fetchall("PRAGMA incremental_vacuum")
            # As the connection is closed too, but there a full disk would go without a word.
            await db.execute_fetchall("PRAGMA wal_checkpoint(PASSIVE)")

    async def previous(self) -> Generation:
        """See `Target`."""
        current = await self.current()
        before = None
        if current is not None:
            before = await self._generation("state = 'kept' AND id < ?", (current.number,))
        return one_before(self.name, before)

    async def rollback(self) -> Generation:
        """See `Target`."""
        await self.previous()  # makes no file where there is none
        async with self._changing() as db:
            before = await self.previous()
            await db.execute("UPDATE generations SET state = 'kept' WHERE state = 'current'")
            await db.execute(
                "UPDATE generations SET state = 'current' WHERE id = ?", (before.number,)
            )
        return before

    async def close(self) -> None:
        """See `Target`."""
        if self._connection is not None:
            await self._connection.close()

    async def _see_that_it_is_ours(self) -> None:
        """Raise StoppedError where another publication has begun, or goes on with the same."""
        found = await self._select(
            "SELECT 1 FROM generations WHERE id = ? AND state = 'next' AND position = ?",
            (self._next, self._position),
        )
        if not found:
            raise StoppedError(f"{self.name}: {TOOK_OVER}")

    async def _generation(self, where: str, parameters: Sequence[object]) -> Generation | None:
        rows = await self._select(
            "SELECT id, identity, scheme, source, entries FROM generations "  # noqa: S608 - fixed
            f"WHERE {where} ORDER BY id DESC LIMIT 1",
            parameters,
        )
        if not rows:
            return None
        number, identity, scheme, source, entries = rows[0]
        try:
            made = Scheme.parse(scheme)
        except ValueError as error:
            raise UsageError(
                f"{self.name}: the keys there are made in a way that is not known here "
                f"({scheme!r}): update batchrank, or choose another file"
            ) from error
        return Generation(number, Header(identity, made, source), entries)

    async def _drop(self, db: aiosqlite.Connection, where: str, *parameters: object) -> None:
        """Remove generations with their entries."""
        gone = f"(SELECT id FROM generations WHERE {where})"  # noqa: S608 - fixed
        await db.execute(f"DELETE FROM entries WHERE generation IN {gone}", parameters)  # noqa: S608
        await db.execute(f"DELETE FROM generations WHERE id IN {gone}", parameters)  # noqa: S608

    @asynccontextmanager
    async def _changing(self) -> AsyncIterator[aiosqlite.Connection]:
        """One transaction."""
        with self._errors():
            db = await self._open()
            await db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                await db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    await db.execute("ROLLBACK")
                raise

    async def _select(self, sql: str, parameters: Sequence[object]) -> list[Any]:
        with self._errors():
            return list(await (await self._open()).execute_fetchall(sql, parameters))

    async def _open(self) -> aiosqlite.Connection:
        """The connection, with the tables made where there is no file yet."""
        if self._connection is None:
            db = await aiosqlite.connect(self._path, isolation_level=None, timeout=10)
            self._connection = db
            ((application,),) = await db.execute_fetchall("PRAGMA application_id")
            ((version,),) = await db.execute_fetchall("PRAGMA user_version")
            ((tables,),) = await db.execute_fetchall("SELECT count(*) FROM sqlite_schema")
            if tables and application != SQLITE_APPLICATION_ID:
                raise UsageError(f"{self.name} is the SQLite file of another program")
            if version > FORMAT:
                raise UsageError(f"{self.name} was written by a newer batchrank; update batchrank")
            if not tables:
                await db.execute_fetchall("PRAGMA auto_vacuum = INCREMENTAL")
            await db.execute_fetchall("PRAGMA journal_mode = WAL")
            if not tables:
                await db.executescript(_SCHEMA)
        return self._connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            text = str(error)
            if "not a database" in text:
                raise UsageError(f"{self.name} is no SQLite file") from error
            if "full" in text or "disk i/o" in text.lower():
                raise StoppedError(
                    f"{self.name}: {error}; free space on its disk and run the same command again"
                ) from error
            raise TargetError(f"{self.name}: {error}; readers keep what they have") from error
