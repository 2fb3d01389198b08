"""Writes an output file so that its name holds either the old content or all of the new."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import BinaryIO

from batchrank.errors import DiskError, UsageError
from batchrank.formats.compression import Sink, compressor
from batchrank.formats.wording import quoted

_REMEDIES = {
    errno.ENOSPC: "free space on its disk, or write to another one",
    errno.EDQUOT: "your quota is used up: delete files there, or write to another disk",
    errno.EFBIG: "the file size limit is reached: raise it, or write to another disk",
    errno.ENOENT: "create its folder, or choose another output",
    errno.ENOTDIR: "a part of its path is a file: choose another output",
    errno.EISDIR: "it is a folder: give a file name in it",
    errno.EACCES: "change the permissions of its folder, or choose another output",
    errno.EPERM: "change the permissions of its folder, or choose another output",
    errno.EROFS: "its disk is read-only: choose another output",
}


class AtomicFile:
    """A context manager that writes bytes to a path, or to standard output for `-`.

    The bytes go to a hidden file in the same folder; leaving the block without an exception
    syncs it and renames it to the path, leaving it by one removes it. An old file keeps its
    mode, a new one follows the umask; a symbolic link stays and its target is replaced; a name
    that ends in `.gz` or `.zst` is packed. Devices and pipes are written to directly.

    Every OSError of the file becomes a DiskError that names path, reason and remedy, a reader
    that closed the pipe included.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._target = Path(os.path.realpath(path))
        self._temporary: Path | None = None
        self._file: BinaryIO | None = None
        self._sink: Sink | None = None

    def __enter__(self) -> AtomicFile:
        try:
            with self._reporting():
                self._file = self._opened()
                self._sink = compressor(self._path, self._file)
        except DiskError:
            self._discard()
            raise
        return self

    def write(self, data: bytes) -> None:
        """Add bytes; raises DiskError."""
        assert self._sink is not None, "write outside the with block"
        with self._reporting():
            self._sink.write(data)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                with self._reporting():
                    self._commit()
        finally:
            self._discard()

    def _opened(self) -> BinaryIO:
        if self._path == "-":
            if sys.stdout is None:
                raise OSError(errno.EBADF, "it is closed")
            return sys.stdout.buffer
        mode = _mode(self._path)
        if mode is not None and stat.S_ISDIR(mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        if mode is not None and not stat.S_ISREG(mode):
            return Path(self._path).open("wb")
        _sweep(self._target)
        self._temporary = self._target.with_name(f"{_prefix(self._target)}{token_hex(4)}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(self._temporary, flags, 0o666)
        self._file = os.fdopen(descriptor, "wb")
        # Held until the file is closed, by a kill too: tells a leftover from a file in use.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if mode is not None:
            os.fchmod(descriptor, stat.S_IMODE(mode))
        return self._file

    def _commit(self) -> None:
        assert self._file is not None
        assert self._sink is not None
        self._sink.close()
        self._file.flush()
        if self._temporary is None:
            return
        os.fsync(self._file.fileno())
        self._temporary.replace(self._target)
        self._temporary = None
        # The new content is in place; a file system that can't sync folders is no failure.
        with suppress(OSError):
            _sync_folder(self._target.parent)

    def _discard(self) -> None:
        """Close and remove whatever is still open, whatever state it is in."""
        if self._file is not None and self._path != "-":
            # Closing flushes, and a full disk fails a second time: the first error was reported.
            if self._sink is not None:
                with suppress(OSError, ValueError):
                    self._sink.close()
            with suppress(OSError):
                self._file.close()
        if self._temporary is not None:
            with suppress(OSError):
                self._temporary.unlink(missing_ok=True)

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError as error:
            if self._path == "-":
                silence_stdout()
            raise DiskError(
                f"{self._name} was closed by its reader before all rows were written."
            ) from error
        except OSError as error:
            remedy = _REMEDIES.get(error.errno or 0, "choose another output")
            fault = f"{self._name} can't be written ({error.strerror or error}): {remedy}"
            raise DiskError(f"{fault}, and run the same command again.", fault=fault) from error

    @property
    def _name(self) -> str:
        return "Standard output" if self._path == "-" else quoted(self._path)


def write_new(path: Path, text: str) -> None:
    """Write a file that must not be there yet; raises UsageError where it is, and DiskError."""
    if os.path.lexists(path):
        raise UsageError(f"{quoted(str(path))} is there already: choose another, or remove it")
    with AtomicFile(str(path.absolute())) as file:
        file.write(text.encode())


def _mode(path: str) -> int | None:
    try:
        return Path(path).stat().st_mode
    except FileNotFoundError:
        return None


def _prefix(target: Path) -> str:
    # Cut, because a file name has at most 255 bytes.
    return f".{target.name[:50]}.partial-"


def _sweep(target: Path) -> None:
    """Remove what killed runs left beside `target`: hidden files that no process has locked."""
    for leftover in target.parent.iterdir():
        if leftover.name.startswith(_prefix(target)):
            with suppress(OSError), leftover.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                leftover.unlink()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def silence_stdout() -> None:
    """Send what Python still holds for a closed pipe nowhere, or it complains at exit."""
    with suppress(OSError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
