"""Copies a store while it may be in use."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from batchrank.errors import UsageError
from batchrank.store.connection import VACUUM_INTO, is_there, make_private, store_errors


def back_up(store: Path, target: Path) -> int:
    """Copy `store`, as of now, to the new file `target` (mode 0600); its size in bytes.

    A run may be writing meanwhile: the copy holds what was committed when it began, and no part of
    it stands under its name before it is complete and synced. Raises StoreError, and UsageError
    where `target` is there already or `store` is not.
    """
    if not is_there(store):
        raise UsageError(f"there is no store at {store}; name another")
    if target.exists():
        raise UsageError(f"{target} is there already; choose a name that is free")
    scratch = target.with_name(f".{target.name}.partial")
    try:
        with store_errors(target):
            make_private(scratch)
        with store_errors(store):
            address = f"file:{quote(os.fsencode(store.absolute()))}?mode=ro"
            with closing(sqlite3.connect(address, uri=True, timeout=10)) as source:
                source.execute(VACUUM_INTO, (os.fsencode(scratch),))
        with store_errors(target):
            with scratch.open("rb+") as file:
                os.fsync(file.fileno())
            scratch.replace(target)
            return target.stat().st_size
    finally:
        scratch.unlink(missing_ok=True)
