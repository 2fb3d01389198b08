"""Cache entries as JSON lines; the first line tells how they were made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson

from batchrank.entries import FORMAT
from batchrank.formats.atomic import AtomicFile
from batchrank.formats.lines import read_lines
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
        """See `Format`."""
        for lines in read_lines(str(path), 1):
            found = orjson.loads(lines[0].data)
            if isinstance(found, dict) and found.get(_MARK) == FORMAT:
                return found
        raise ValueError("its first line does not say so")

    def entries(self, path: Path) -> Iterator[list[Entry]]:
        """See `Format`."""
        is_first = True
        for lines in read_lines(str(path)):
            rows = [orjson.loads(line.data) for line in lines]
            yield [
                Entry(row["key"], orjson.dumps(row["value"]), row["expires"])
                for row in (rows[1:] if is_first else rows)
            ]
            is_first = False


def _line(entry: Entry) -> bytes:
    # Put together by hand, so that the value keeps the very bytes that other targets hold.
    expires = orjson.dumps(entry.expires)
    return b'{"key":"%b","expires":%b,"value":%b}\n' % (entry.key.encode(), expires, entry.value)
