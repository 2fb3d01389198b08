"""Keeps a second runner out of a store, and says who holds it."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from batchrank.errors import StoreError, StoreInUseError


@contextmanager
def store_lock(store: Path) -> Iterator[None]:
    """Hold the lock file beside `store`; StoreInUseError names the holder where there is one.

    The kernel frees the lock when its process ends, however it ends. The file itself stays:
    removing it would let two runners lock two files of one name.
    """
    path = store.with_name(f"{store.name}.lock")
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreError(
            f"store {store}: its folder can't be written ({error.strerror}); "
            "choose another with --store"
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 200).decode("utf-8", "replace").strip()
            raise StoreInUseError(
                f"store {store} is in use by {holder or 'another runner'}; wait until it ends "
                "(--wait-for-lock), or choose another store with --store"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


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
