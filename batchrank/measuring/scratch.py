"""Folders for what is gone with a command, also where the command was killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "batchrank-trial-"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder of this command's own; leaving the context removes it.

    Those that killed commands of this user left behind are removed first. A command that lives
    holds a lock on its folder, which the kernel frees when the process ends, however it ends.
    Raises OSError where there is no room for one.
    """
    _remove_stale()
    folder, descriptor = _make()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _make() -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        # Before it is locked it looks stale, and another command may take it away.
        if (descriptor := _locked(folder)) is not None:
            if folder.exists():
                return folder, descriptor
            os.close(descriptor)


def _locked(folder: Path) -> int | None:
    """A descriptor that holds the folder's lock; None where another has it or it is gone."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _remove_stale() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if folder.lstat().st_uid != os.getuid():
                continue
        if (descriptor := _locked(folder)) is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(descriptor)
