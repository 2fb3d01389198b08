"""Reads a JSON array as the lines of its elements, without parsing them.

Libraries that parse as they go (ijson) end at the first NaN and replace half characters without a
word; cut apart unread, an element is judged by itself, like a line of JSONL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from batchrank.errors import UsageError
from batchrank.formats.lines import MAX_LINE, RawLine
from batchrank.formats.opening import Opened

_OPEN = re.compile(rb"\s*\[\s*(?:[{\]]|$)")
_OUTSIDE = re.compile(rb'["\[\]{},]')
_INSIDE = re.compile(rb'[\\"]')
_BLANK = b" \t\r\n"
_LINE_ENDS = bytes.maketrans(b"\r\n", b"  ")


def is_json_array(head: bytes) -> bool:
    """Whether a file that begins so is one array of objects, not arrays or objects by line."""
    return _OPEN.match(head) is not None


def json_array_lines(file: Opened) -> Iterator[RawLine]:
    """The elements of the array that a file is, numbered from 1.

    Line ends between the tokens of an element become spaces. Raises UsageError where the file is
    no array, is cut off, or goes on after it.
    """
    marks = _Marks()
    element = _Element()
    number = 0
    is_begun = is_ended = False
    for chunk in file.chunks:
        start = 0
        for place in marks.find(chunk):
            element.add(chunk[start:place])
            mark, text, start = chunk[place : place + 1], element.take(), place + 1
            if text and is_begun and not is_ended:
                number += 1
                yield RawLine(number, text)
            elif text or mark != (b"]" if is_begun else b"[") or is_ended or number:
                raise _malformed(file, number)
            is_ended = mark == b"]"
            is_begun = True
        element.add(chunk[start:])
    if is_begun and not is_ended:
        raise UsageError(
            f"{file.name} ends in element {number + 1} of its JSON array: "
            "it was cut off, copy it again."
        )
    if element.take():
        raise _malformed(file, number)


def _malformed(file: Opened, number: int) -> UsageError:
    where = f" behind element {number}" if number else ""
    return UsageError(f"{file.name} is no JSON array{where}: expected `[`, objects and `]`.")


class _Marks:
    """Finds the commas and brackets of the outermost array, chunk by chunk."""

    def __init__(self) -> None:
        self._depth = 0
        self._is_text = False
        self._escaped = 0
        """Bytes at the beginning of the next chunk that a backslash speaks of."""

    def find(self, chunk: bytes) -> Iterator[int]:
        place = self._escaped
        while found := (_INSIDE if self._is_text else _OUTSIDE).search(chunk, place):
            mark, place = found[0], found.end()
            if mark == b"\\":
                place += 1
            elif mark == b'"':
                self._is_text = not self._is_text
            elif self._is_outermost(mark):
                yield found.start()
        self._escaped = max(0, place - len(chunk))

    def _is_outermost(self, mark: bytes) -> bool:
        if mark == b",":
            return self._depth == 1
        if mark in (b"[", b"{"):
            self._depth += 1
            return self._depth == 1
        self._depth -= 1
        return self._depth <= 0


class _Element:
    """Gathers the bytes of an element, at most one more than a line may have."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._room = MAX_LINE + 1

    def add(self, data: bytes) -> None:
        if data and self._room:
            self._parts.append(data[: self._room])
            self._room -= len(self._parts[-1])

    def take(self) -> bytes:
        """The element without white space around it; the next one is empty."""
        whole = b"".join(self._parts).strip(_BLANK)
        self._parts, self._room = [], MAX_LINE + 1
        return whole.translate(_LINE_ENDS)
