"""Opens an input, packed or not, a file or standard input, and looks at its first bytes."""

from __future__ import annotations

import difflib
import sys
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import zstandard

from batchrank.errors import UsageError
from batchrank.formats.compression import decompressed
from batchrank.formats.wording import quoted

_CHUNK = 256 * 1024
_HEAD = 64 * 1024
_BOM = b"\xef\xbb\xbf"
_SUMMARY = ".summary.json"
"""Stands beside a result, which is not what a missing input was meant to be."""


@dataclass(frozen=True, slots=True)
class Opened:
    """An input that is open: `chunks` are all its bytes, unpacked, without a byte order mark.

    `head` holds the first tens of KB of them, `name` is how messages call it.
    """

    name: str
    head: bytes
    chunks: Iterator[bytes]


@contextmanager
def opened(source: str) -> Iterator[Opened]:
    """Open a path, or standard input for `-`.

    Raises UsageError where it can't be opened; reading the chunks does where it is damaged, cut
    off or can't be read on.
    """
    name = "standard input" if source == "-" else quoted(source)
    with _file(source, name) as file:
        chunks = _plain(file, name)
        head = b""
        while len(head) < _HEAD and (chunk := next(chunks, None)) is not None:
            head += chunk
        head = head.removeprefix(_BOM)
        yield Opened(name, head, chain((head,), chunks))


def _file(source: str, name: str) -> AbstractContextManager[BinaryIO]:
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
    own = {name.removesuffix(_SUMMARY) for name in names if name.endswith(_SUMMARY)}
    given = [name for name in names if name.removesuffix(_SUMMARY) not in own]
    near = difflib.get_close_matches(path.name, given, n=1)
    return f"; did you mean {quoted(path.parent / near[0])}?" if near else "."


def _plain(file: BinaryIO, name: str) -> Iterator[bytes]:
    """Yield unpacked bytes; damage becomes a UsageError that says which line was reached."""
    line = 1
    try:
        for chunk in decompressed(iter(partial(file.read, _CHUNK), b"")):
            line += _line_ends(chunk)
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


def _line_ends(data: bytes) -> int:
    """How many there are. `bytes.count` looks at every byte, `find` at many at a time."""
    found = 0
    at = data.find(b"\n")
    while at >= 0:
        found += 1
        at = data.find(b"\n", at + 1)
    return found
