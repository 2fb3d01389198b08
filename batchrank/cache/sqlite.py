"""Reads cache entries from a SQLite file that `batchrank publish` keeps."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from threading import Lock

from batchrank.cache.lookup import Reply
from batchrank.errors import TargetError

# One statement: the pointer and the entry are of one moment.
_READ = """
SELECT id, scheme, (
    SELECT value FROM entries
    WHERE generation = generations.id AND key = ? AND (expires IS NULL OR expires > ?)
) FROM generations WHERE state = 'current'
"""


class SqliteReader:
    """Opens the file when it is first asked, and never writes to it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None

    def read(self, key: str) -> Reply | None:
        """What readers see now; raises TargetError."""
        with self._lock:
            try:
                row = self._row(key)
            except sqlite3.Error as error:
                self._close()  # what is there next time may be another file
                raise TargetError(f"the cache {self._path} can't be read: {error}") from error
        return None if row is None else Reply(*row)

    def _row(self, key: str) -> tuple[int, str, str | None] | None:
        if self._connection is None:
            self._connection = sqlite3.connect(
                f"{self._path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False
            )
        with closing(self._connection.execute(_READ, (key, time.time()))) as cursor:
            row: tuple[int, str, str | None] | None = cursor.fetchone()
        return row

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
