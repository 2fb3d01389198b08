"""A file of cache entries as a target: written anew with what is carried over, replaced whole."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Protocol

from batchrank.entries import Scheme
from batchrank.errors import DiskError, StoppedError, UsageError
from batchrank.formats.atomic import AtomicFile
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

_ROW_BYTES = 120


class Writer(Protocol):
    """Puts entries into a file."""

    def write(self, entries: Sequence[Entry]) -> None:
        """Add some."""

    def close(self) -> None:
        """Write what is still held back."""

    def abandon(self) -> None:
        """Write nothing more."""


class Format(Protocol):
    """How entries stand in a file."""

    def writer(self, file: AtomicFile, header: dict[str, str]) -> Writer:
        """One that writes to `file`, beginning with what is known of all entries."""

    def header(self, path: Path) -> dict[str, str]:
        """What a file says of all its entries; raises ValueError where it is none of this kind."""

    def entries(self, path: Path) -> Iterator[list[Entry]]:
        """All entries of a file, some at a time; raises ValueError as `header`."""


class FileTarget:
    """See `Target`. Older generations are kept beside the file, as `FILE.1`, `FILE.2`, ….

    Holds the keys that it has written in memory: about 100 bytes each.
    """

    def __init__(self, path: Path, form: Format, now: Callable[[], float]) -> None:
        self.name = quoted(path)
        self._path = Path(os.path.realpath(path))
        self._form = form
        self._now = now
        self._keys: set[bytes] = set()
        self._file: AtomicFile | None = None
        self._writer: Writer | None = None
        self._before: Generation | None = None

    async def current(self) -> Generation | None:
        """See `Target`."""
        return await asyncio.to_thread(self._generation, self._path)

    async def ready(self) -> Generation | None:
        """See `Target`."""
        return await self.current()

    async def room(self, plan: Plan) -> Room:
        """See `Target`; a full disk is noticed when it is full."""
        return Room(round(plan.entries * (plan.value_bytes + _ROW_BYTES)))

    async def begin(self, header: Header) -> Begun:
        """See `Target`; always from the beginning."""
        now = self._now()
        self._before = current = await self.current()
        number = current.number + 1 if current else 1
        named = {
            "identity": header.identity,
            "scheme": str(header.scheme),
            "source": header.source,
            "generation": str(number),
        }
        self._file = await asyncio.to_thread(AtomicFile, str(self._path))
        await asyncio.to_thread(self._file.__enter__)
        self._writer = await asyncio.to_thread(self._form.writer, self._file, named)
        return Begun(number, now)

    async def write(self, entries: Sequence[Entry], position: int) -> int:
        """See `Target`."""
        return await asyncio.to_thread(self._write, entries)

    async def carry(self, after: str, *, copy: bool) -> tuple[str, Coverage]:
        """See `Target`; all at once."""
        return "", await asyncio.to_thread(self._carry, copy)

    async def switch(self) -> int:
        """See `Target`."""
        await asyncio.to_thread(self._switch)
        return len(self._keys)

    async def discard(self) -> None:
        """See `Target`."""
        if self._file is not None:
            if self._writer is not None:
                self._writer.abandon()
            await asyncio.to_thread(self._file.__exit__, DiskError, None, None)
            self._file = None

    async def prune(self, keep: int) -> None:
        """See `Target`."""
        await asyncio.to_thread(self._prune, keep)

    async def previous(self) -> Generation:
        """See `Target`; the current file may be damaged."""
        before = await asyncio.to_thread(self._generation, self._older(1))
        return one_before(self.name, before)

    async def rollback(self) -> Generation:
        """See `Target`; the file that was current is gone."""
        before = await self.previous()
        await asyncio.to_thread(self._roll_back)
        return before

    async def close(self) -> None:
        """See `Target`."""
        await self.discard()

    def _generation(self, path: Path) -> Generation | None:
        if not path.exists():
            return None
        names = ("identity", "scheme", "source", "generation")
        try:
            header = self._form.header(path)
            if wrong := [name for name in names if not isinstance(header.get(name), str)]:
                raise ValueError(f"what it says of them has no {wrong[0]}")
            scheme = Scheme.parse(header["scheme"])
            number = int(header["generation"])
        except (ValueError, OSError) as error:
            raise UsageError(
                f"{quoted(path)} holds no cache entries ({error}): move it away, or choose another"
            ) from error
        return Generation(number, Header(header["identity"], scheme, header["source"]))

    def _write(self, entries: Iterable[Entry]) -> int:
        assert self._writer is not None
        new = []
        for entry in entries:
            key = _packed(entry.key)
            if key not in self._keys:
                self._keys.add(key)
                new.append(entry)
        self._writer.write(new)
        return len(self._keys)

    def _carry(self, copy: bool) -> Coverage:
        if not self._path.exists():
            return Coverage(0, 0)
        now = self._now()
        found = Coverage(0, 0)
        for chunk in self._stored():
            live = [entry for entry in chunk if entry.expires is None or entry.expires > now]
            if copy:
                self._write(live)
            covered = sum(_packed(entry.key) in self._keys for entry in live)
            found += Coverage(len(live), covered)
        return found

    def _stored(self) -> Iterator[list[Entry]]:
        """The entries of the current file; UsageError where it is damaged."""
        try:
            for chunk in self._form.entries(self._path):
                for entry in chunk:
                    _see_that_it_is_one(entry)
                yield chunk
        except (ValueError, OSError) as error:
            raise UsageError(
                f"{self.name} is damaged ({error}), so that nothing can be carried over from it: "
                "go back to the generation before (--rollback), or move it away; then publish again"
            ) from error

    def _switch(self) -> None:
        assert self._file is not None
        assert self._writer is not None
        self._writer.close()
        with _alone_in(self._path.parent):
            if self._generation(self._path) != self._before:
                raise StoppedError(f"{self.name}: {TOOK_OVER}")
            self._keep_old()
            self._file.__exit__(None, None, None)
            self._file = None

    def _keep_old(self) -> None:
        """Give the old file a second name, until the new one takes its first."""
        newest = self._older(1)
        if not self._path.exists() or (newest.exists() and newest.samefile(self._path)):
            return
        there = next(number for number in count(1) if not self._older(number).exists())
        for number in range(there, 1, -1):
            self._older(number - 1).replace(self._older(number))
        os.link(self._path, newest)

    def _prune(self, keep: int) -> None:
        for number in count(keep):
            if not (older := self._older(number)).exists():
                return
            older.unlink()

    def _roll_back(self) -> None:
        self._older(1).replace(self._path)
        for number in count(2):
            if not (older := self._older(number)).exists():
                return
            older.replace(self._older(number - 1))

    def _older(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")


def _packed(key: str) -> bytes:
    return bytes.fromhex(key.replace(":", ""))


def _see_that_it_is_one(entry: Entry) -> None:
    """Raise ValueError where a file has something else in place of an entry."""
    is_time = isinstance(entry.expires, float | int) and not isinstance(entry.expires, bool)
    if not isinstance(entry.key, str) or not (is_time or entry.expires is None):
        raise ValueError(f"an entry has the key {entry.key!r} and ends at {entry.expires!r}")
    _packed(entry.key)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keep other publications from replacing a file there."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
