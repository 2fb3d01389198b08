"""Opens a store file: refuses what isn't one, migrates what is older, maps SQLite's errors."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import aiosqlite

from batchrank.errors import FilesError, StoreError, UsageError
from batchrank.store.schema import APPLICATION_ID, MIGRATIONS, VERSION

_MAGIC = b"SQLite format 3\x00"
_SMALLEST = 512
"""Bytes: the least that a page can have (https://sqlite.org/fileformat.html, 1.3.2)."""
VACUUM_INTO = "VACUUM INTO CAST(? AS TEXT)"
"""Copies a store to the file whose name is given as bytes, since names need not be UTF-8."""


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into StoreErrors that say what to do."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        if _is_out_of_files(error):
            raise FilesError from error
        text = str(error).lower()
        if "full" in text or "no space" in text:
            remedy = "free space on its disk and run the same command again; nothing is lost"
        elif "readonly" in text or "read-only" in text or "permission" in text:
            remedy = "make the file and its folder writable, or choose another store"
        elif "disk i/o" in text or "file too large" in text:
            remedy = (
                "its disk failed, or a quota or a limit on file sizes (`ulimit -f`) is reached: "
                "raise it and run the same command again; what was committed is kept"
            )
        elif "locked" in text or "busy" in text:
            remedy = "another program holds it; close it and run the same command again"
        elif "malformed" in text or "not a database" in text or "corrupt" in text:
            remedy = "move the file away to start anew, or restore a backup"
        else:
            remedy = "run the same command again; what was committed is kept"
        raise StoreError(f"store {path}: {error}; {remedy}") from error


def _is_out_of_files(error: Exception) -> bool:
    """Whether no more files may be opened, which SQLite does not tell: one is tried."""
    if "unable to open" in str(error):
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError as refused:
            error = refused
    return FilesError.is_behind(error)


async def connect(path: Path, *, create: bool) -> aiosqlite.Connection:
    """Open (or create, mode 0600) the store at `path`, migrated to this version.

    Raises UsageError where the file is missing and not to be created, is no batchrank store, or was
    written by a newer batchrank; StoreError where it can't be used. What is refused is not touched.
    """
    with store_errors(path):
        was_killed = await asyncio.to_thread(_prepare, path, create)
        if not create and await asyncio.to_thread(_is_on_read_only_disk, path):
            return await _connect_read_only(path, was_killed=was_killed)
        connection = await aiosqlite.connect(path, isolation_level="IMMEDIATE", timeout=10)
    try:
        with store_errors(path):
            await _set_up(connection, path)
            if was_killed and create:
                await _check(connection, path)
    except BaseException:
        await connection.close()
        raise
    return connection


def _is_on_read_only_disk(path: Path) -> bool:
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


async def _connect_read_only(path: Path, *, was_killed: bool) -> aiosqlite.Connection:
    """Open a store that nobody can write, as it is; StoreError where that would not be all."""
    if was_killed:
        raise StoreError(
            f"store {path} is on a read-only disk, and its last writer did not close it: copy it, "
            f"with {path.name}-wal, to a disk that can be written"
        )
    file = quote(os.fsencode(await asyncio.to_thread(path.absolute)))
    connection = await aiosqlite.connect(f"file:{file}?immutable=1", uri=True, isolation_level=None)
    try:
        if await _version(connection, path) != VERSION:
            raise StoreError(
                f"store {path} was written by an older batchrank and is on a read-only disk: copy "
                "it to a disk that can be written"
            )
    except BaseException:
        await connection.close()
        raise
    return connection


def make_private(path: Path) -> None:
    """Make an empty file that only its owner may read, or empty one; raises OSError."""
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600))
    path.chmod(0o600)  # of one that was there


async def _check(connection: aiosqlite.Connection, path: Path) -> None:
    """Look through a store whose last writer did not close it; StoreError where it is damaged."""
    (verdict,) = await _one(connection, "PRAGMA quick_check(1)")
    if verdict != "ok":
        raise StoreError(
            f"store {path} is corrupt ({verdict}); move it away to start anew, or restore a backup"
        )


def is_there(path: Path) -> bool:
    """Whether there is a file at `path`; UsageError where no store can be there, SQLite or not.

    Not to be asked while this process has the store open: see `_is_file`.
    """
    if not _is_file(path):
        return False
    with path.open("rb") as file:
        head = file.read(len(_MAGIC))
    if head and head != _MAGIC:
        raise _no_store(path)
    return True


def _is_file(path: Path) -> bool:
    """The same without a look into it.

    Closing any descriptor of a file drops all POSIX locks of the process on it, those of SQLite's
    other connections too: another process could then take itself for the last, and remove the WAL
    (https://sqlite.org/howtocorrupt.html, 2.2).
    """
    if not path.is_file():
        if path.is_dir():
            raise UsageError(f"{path} is a folder and no store; give a file name in it")
        if path.exists():
            raise UsageError(f"{path} is no file and no store; choose another store")
        if not path.parent.is_dir():
            raise UsageError(
                f"there is no store at {path}, nor a folder for it; choose another store"
            )
        return False
    return True


def _no_store(path: Path) -> UsageError:
    return UsageError(f"{path} is not a batchrank store; choose another file")


def file_number(path: Path) -> tuple[int, int] | None:
    """What tells one file from another that takes its name; None where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def size_of(path: Path) -> int:
    """Bytes that a store takes on its disk, with what is not yet in its one file."""
    found = 0
    for file in (path, path.with_name(f"{path.name}-wal")):
        with suppress(OSError):
            found += file.stat().st_size
    return found


def _prepare(path: Path, create: bool) -> bool:
    """Refuse what is no store, make what isn't there; whether the last writer did not close it."""
    if not _is_file(path):
        if not create:
            raise UsageError(f"there is no store at {path}; name another, or run a job first")
        make_private(path)
        return False
    size = path.stat().st_size
    if 0 < size < _SMALLEST:
        raise _no_store(path)  # SQLite would take it for an empty one
    if create and not size:
        path.chmod(0o600)  # whoever made it empty, what comes into it is private
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size > 0
    except FileNotFoundError:
        return False


async def _version(connection: aiosqlite.Connection, path: Path) -> int:
    """The version of a store, 0 of an empty file; UsageError where it is none, or a newer one."""
    try:
        (application,) = await _one(connection, "PRAGMA application_id")
    except sqlite3.DatabaseError as error:
        if "not a database" in str(error):
            raise _no_store(path) from error
        raise
    (version,) = await _one(connection, "PRAGMA user_version")
    (tables,) = await _one(connection, "SELECT count(*) FROM sqlite_schema")
    if application != APPLICATION_ID and tables:
        raise UsageError(f"{path} is the SQLite file of another program; choose another file")
    if version > VERSION:
        raise UsageError(
            f"store {path} was written by a newer batchrank (version {version} of the store, "
            f"this one knows {VERSION}); update batchrank"
        )
    return int(version)


async def _set_up(connection: aiosqlite.Connection, path: Path) -> None:
    version = await _version(connection, path)
    if 0 < version < VERSION:
        old = path.with_name(f"{path.name}.v{version}")
        await asyncio.to_thread(make_private, old)
        await connection.execute(VACUUM_INTO, (os.fsencode(old),))
    # WAL may be refused on a network share; a rollback journal is as safe, only slower.
    await connection.execute("PRAGMA journal_mode = WAL")
    await connection.execute("PRAGMA synchronous = FULL")
    if version < VERSION:
        script = "".join(MIGRATIONS[version:])
        await connection.executescript(
            f"BEGIN IMMEDIATE; PRAGMA application_id = {APPLICATION_ID}; {script}"
            f"PRAGMA user_version = {VERSION}; COMMIT;"
        )


async def _one(connection: aiosqlite.Connection, sql: str) -> sqlite3.Row | tuple[int, ...]:
    async with connection.execute(sql) as cursor:
        row = await cursor.fetchone()
    assert row is not None
    return row
