"""Keeps input lines until their turn comes, packed, in a file that no crash leaves behind."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryFile
from typing import Self

import zstandard

from batchrank.errors import DiskError


class Spool:
    """A temporary file in `folder` that has no name there; the context closes it.

    Input is read once, whatever it is: a pipe, a packed file, or one that changes meanwhile.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            self._file = TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - closed in __exit__
        except OSError as error:
            raise self._failure(error) from error
        self._end = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, data: bytes) -> tuple[int, int]:
        """Keep `data`; where it stands, for `get`. Raises DiskError."""
        packed = zstandard.compress(data, 1)
        offset = self._end
        try:
            while self._end < offset + len(packed):
                self._end += os.pwrite(self._file.fileno(), packed[self._end - offset :], self._end)
        except OSError as error:
            raise self._failure(error) from error
        return offset, len(packed)

    def get(self, offset: int, length: int) -> bytes:
        """What was added. Raises DiskError."""
        try:
            return zstandard.decompress(os.pread(self._file.fileno(), length, offset))
        except OSError as error:
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> DiskError:
        return DiskError(
            f"lines that wait for their turn can't be kept in {self._folder}: {error.strerror}; "
            "free space there and run the same command again, nothing is lost"
        )
