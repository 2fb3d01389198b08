"""Cache entries as JSON lines; the first line tells how they were made."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson

from batchrank.entries import FORMAT
from batchrank.formats.atomic import AtomicFile
from batchrank.formats.lines import RawLine, read_lines
from batchrank.publishing.target import Entry

_MARK = "batchrank-cache"


class JsonlWriter:
    """See `Writer`."""

    def __init__(self, file: AtomicFile, header: dict[str, str]) -> None:
        self._file = file
        file.write(orjson.dumps({_MARK: FORMAT, **header}) + b"\n")

    def write(self, entries: Sequence[Entry]) -> None:
        """See `Writer`."""
        self._file.write(b"".join(map(_line, entries)))

    def close(self) -> None:
        """See `Writer`."""

    def abandon(self) -> None:
        """See `Writer`."""


class Jsonl:
    """See `Format`."""

    def writer(self, file: AtomicFile, header: dict[str, str]) -> JsonlWriter:
        """See `Format`."""
        return JsonlWriter(file, header)

    def header(self, path: Path) -> dict[str, str]:
        """See `Format`; raises ValueError too where the last line of a file that is not packed was
        cut, which a glance at its end tells."""
        for lines in read_lines(str(path), 1):
            found = orjson.loads(lines[0].data)
            if isinstance(found, dict) and found.get(_MARK) == FORMAT:
                if not _ends_well(path):
                    raise ValueError("its last line was cut")
                return found
        raise ValueError("its first line does not say so")

    def entries(self, path: Path) -> Iterator[list[Entry]]:
        """See `Format`."""
        is_first = True
        for lines in read_lines(str(path)):
            yield [_entry(line) for line in (lines[1:] if is_first else lines)]
            is_first = False


def _entry(line: RawLine) -> Entry:
    try:
        row = orjson.loads(line.data)
        if not isinstance(row["value"], dict):
            raise TypeError("its value is no object")
        return Entry(row["key"], orjson.dumps(row["value"]), row["expires"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"line {line.number} is no entry: {error!r}") from error


def _ends_well(path: Path) -> bool:
    """Whether a file ends behind a line, or is packed, which is seen as it is read."""
    with path.open("rb") as file:
        if file.read(1) != b"{":
            return True
        file.seek(-1, os.SEEK_END)
        return file.read() == b"\n"


def _line(entry: Entry) -> bytes:
    # Put together by hand, so that the value keeps the very bytes that other targets hold.
    expires = orjson.dumps(entry.expires)
    return b'{"key":"%b","expires":%b,"value":%b}\n' % (entry.key.encode(), expires, entry.value)
