"""Reads a JSONL file or pipe, packed or not, as blocks of numbered raw lines in flat memory."""

from __future__ import annotations

import difflib
import sys
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import zstandard

from batchrank.errors import UsageError
from batchrank.formats.compression import decompressed
from batchrank.formats.sniff import refusal
from batchrank.formats.wording import quoted

MAX_LINE = 64 * 1024 * 1024
"""Bytes of the longest line that is read; a longer one is cut and refused when it is parsed."""

_CHUNK = 256 * 1024
_HEAD = 64 * 1024
_BLOCK_LINES = 256
_BLOCK_BYTES = 1024 * 1024
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class RawLine:
    """One line that is not blank, without its line end.

    `number` counts from 1, blank lines included. `data` is never longer than `MAX_LINE` + 1
    bytes: that one byte more tells `parse_request` that the line was longer.
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
    name = "standard input" if source == "-" else quoted(source)
    with _opened(source, name) as file:
        lines = _split(_from_head(_plain(file, name), name))
        block: list[RawLine] = []
        size = seen = 0
        for number, line in enumerate(lines, 1):
            if not line or line.isspace():
                continue
            seen += 1
            block.append(RawLine(number, line.removesuffix(b"\r")))
            size += len(line)
            if len(block) >= _BLOCK_LINES or size >= _BLOCK_BYTES:
                yield block
                block, size = [], 0
            if seen == limit:
                break
        if block:
            yield block
        if not seen:
            raise UsageError(f"{name} is empty: expected one JSON object a line.")


def _opened(source: str, name: str) -> AbstractContextManager[BinaryIO]:
    if source == "-":
        if sys.stdin is None:
            raise UsageError("Standard input is closed: give a file or a pipe.")
        # Unbuffered where there is such a layer: a reader that waits in the buffered one holds a
        # lock without which the interpreter can't end.
        return nullcontext(getattr(sys.stdin.buffer, "raw", sys.stdin.buffer))
    try:
        return Path(source).open("rb")
    except FileNotFoundError:
        raise UsageError(f"{name} does not exist{_nearest(Path(source))}") from None
    except IsADirectoryError:
        raise UsageError(f"{name} is a folder: give a JSONL file in it.") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{name} can't be opened: {reason}.") from error


def _nearest(path: Path) -> str:
    """Suggest a file of the same folder whose name is much like the one that is missing."""
    try:
        names = [file.name for file in path.parent.iterdir()]
    except OSError:
        return f", and nor does its folder {quoted(path.parent)}."
    near = difflib.get_close_matches(path.name, names, n=1)
    return f"; did you mean {quoted(path.parent / near[0])}?" if near else "."


def _plain(file: BinaryIO, name: str) -> Iterator[bytes]:
    """Yield unpacked bytes; damage becomes a UsageError that says which line was reached."""
    line = 1
    try:
        for chunk in decompressed(iter(partial(file.read, _CHUNK), b"")):
            line += chunk.count(b"\n")
            yield chunk
    except EOFError:
        raise UsageError(
            f"{name} ends in the middle of its packed data, in line {line}: "
            "it was cut off, copy or pack it again."
        ) from None
    except (zlib.error, zstandard.ZstdError) as error:
        raise UsageError(
            f"{name} is damaged in line {line} ({error}): copy or pack it again."
        ) from error
    except OSError as error:
        raise UsageError(f"{name} can't be read beyond line {line}: {error.strerror}.") from error


def _from_head(chunks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Look at the first bytes and refuse what is no JSONL; then yield everything, BOM dropped."""
    head = b""
    while len(head) < _HEAD and (chunk := next(chunks, None)) is not None:
        head += chunk
    head = head.removeprefix(_BOM)
    if reason := refusal(head):
        raise UsageError(f"{name} {reason}.")
    return chain((head,), chunks)


def _split(chunks: Iterator[bytes]) -> Iterator[bytes]:
    r"""Split at `\n`; what a line has beyond `MAX_LINE` + 1 bytes is dropped as it is read."""
    parts: list[bytes] = []
    room = MAX_LINE + 1
    for chunk in chunks:
        *lines, rest = chunk.split(b"\n")
        if lines:
            parts.append(lines[0][:room])
            lines[0] = b"".join(parts)
            yield from lines
            parts, room = [], MAX_LINE + 1
        if rest and room:
            parts.append(rest[:room])
            room -= len(parts[-1])
    if parts:
        yield b"".join(parts)
