"""Keeps a second runner out of a store, and says who holds it."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from batchrank.errors import StoreError, StoreInUseError, UsageError

_HOLDER = b"process "


@contextmanager
def store_lock(store: Path) -> Iterator[None]:
    """Hold the lock file beside `store`; StoreInUseError names the holder where there is one.

    Raises StoreError where the file can't be written, and UsageError where the file of that name is
    no lock: that of `uv` is `uv.lock`.

    The kernel frees the lock when its process ends, however it ends. The file itself stays:
    removing it would let two runners lock two files of one name.
    """
    path = store.with_name(f"{store.name}.lock")
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreError(
            f"store {store}: its folder can't be written ({error.strerror}); choose another store"
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 200).decode("utf-8", "replace").strip()
            raise StoreInUseError(
                f"store {store} is in use by {holder or 'another runner'}; wait until it ends, or "
                "choose another store"
            ) from None
        if os.read(descriptor, len(_HOLDER)) not in (b"", _HOLDER):
            raise UsageError(
                f"{path} is another program's file, and a store {store} would need that name: "
                "choose another store"
            )
        _sign(descriptor, path)
        yield
    finally:
        os.close(descriptor)


def _sign(descriptor: int, path: Path) -> None:
    """Say in the file who holds it; StoreError where its disk has no room for that."""
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, _HOLDER + f"{os.getpid()} on {socket.gethostname()}\n".encode(), 0)
    except OSError as error:
        raise StoreError(
            f"the store's lock file {path} can't be written ({error.strerror}): free space on its "
            "disk and run the same command again, or choose another store"
        ) from error


def is_locked(store: Path) -> bool:
    """Whether a runner holds `store` now."""
    path = store.with_name(f"{store.name}.lock")
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)
