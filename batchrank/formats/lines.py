"""Reads a JSONL file or pipe, packed or not, as blocks of numbered raw lines in flat memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from batchrank.errors import UsageError
from batchrank.formats.opening import Opened, opened
from batchrank.formats.sniff import OWN_OUTPUT, no_text, refusal

MAX_LINE = 64 * 1024 * 1024
"""Bytes of the longest line that is read; a longer one is cut and refused when it is parsed."""

_BLOCK_LINES = 256
_BLOCK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class RawLine:
    """One query of an input: a line that is not blank, without its line end.

    `number` counts from 1, blank lines included; where the input is no JSONL, `data` is the line
    that it would be, and `number` the row or element of the file that it begins at. `data` is
    never longer than `MAX_LINE` + 1 bytes: that one byte more tells `parse_request` that the line
    was longer.
    """

    number: int
    data: bytes


def read_lines(source: str, limit: int | None = None) -> Iterator[list[RawLine]]:
    r"""Yield the lines of a path, or of standard input for `-`, in blocks of at most 256.

    A block also ends once it holds 1 MB. Lines end at `\n` or `\r\n` and nowhere else; blank
    ones are skipped; a byte order mark is dropped; gzip and zstd are known by their first bytes.
    `limit` (at least 1) stops after so many lines that are not blank.

    Raises UsageError: with the first block if the source can't be opened, is empty or is no
    JSONL; in mid-stream if it is damaged, cut off or can't be read on.
    """
    with opened(source) as file:
        check_text(file)
        yield from in_blocks(json_lines(file), limit, file.name)


def check_text(file: Opened) -> None:
    """UsageError that says what a file looks like which holds no text."""
    if (reason := no_text(file.head)) is not None:
        raise UsageError(f"{file.name} {reason}.")


def json_lines(file: Opened, *, results: bool = False) -> Iterator[RawLine]:
    """The lines of a file that is JSONL; UsageError where it is not.

    With `results` it may be batchrank's own output.
    """
    reason = refusal(file.head)
    if reason is not None and not (results and reason == OWN_OUTPUT):
        raise UsageError(f"{file.name} {reason}.")
    for number, line in enumerate(split_lines(file.chunks), 1):
        if line and not line.isspace():
            yield RawLine(number, line.removesuffix(b"\r"))


def in_blocks(
    lines: Iterator[RawLine], limit: int | None, name: str, expected: str = "one JSON object a line"
) -> Iterator[list[RawLine]]:
    """Put lines in blocks of at most 256 lines or 1 MB, `limit` lines in all.

    Raises UsageError, which says what is `expected`, where there are none.
    """
    block: list[RawLine] = []
    size = seen = 0
    for line in islice(lines, limit):
        seen += 1
        block.append(line)
        size += len(line.data)
        if len(block) >= _BLOCK_LINES or size >= _BLOCK_BYTES:
            yield block
            block, size = [], 0
    if block:
        yield block
    if not seen:
        raise UsageError(f"{name} is empty: expected {expected}.")


def split_lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    r"""Split at `\n`; what a line has beyond `MAX_LINE` + 1 bytes is dropped as it is read."""
    parts: list[bytes] = []
    room = MAX_LINE + 1
    for chunk in chunks:
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:  # far faster than `split` on long lines
            parts.append(chunk[start : min(end, start + room)])
            yield b"".join(parts)
            parts, room, start = [], MAX_LINE + 1, end + 1
        if start < len(chunk) and room:
            parts.append(chunk[start : start + room])
            room -= len(parts[-1])
    if parts:
        yield b"".join(parts)
