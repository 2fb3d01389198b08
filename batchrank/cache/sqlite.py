"""Reads cache entries from a SQLite file that `batchrank publish` keeps."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from threading import Lock

from batchrank.cache.lookup import Reply

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
        """What readers see now; raises sqlite3.Error."""
        with self._lock:
            if self._connection is None:
                self._connection = sqlite3.connect(
                    f"{self._path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False
                )
            with closing(self._connection.execute(_READ, (key, time.time()))) as cursor:
                row = cursor.fetchone()
        return None if row is None else Reply(*row)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
