"""Tells lines that repeat an earlier query from lines that contradict it."""

from __future__ import annotations

import hashlib

from batchrank.formats.lines import RawLine
from batchrank.formats.requests import repeated_qid


class Qids:
    """The qids of an input and the lines that have them.

    Memory grows only by under 200 bytes a query: two hashes of 64 bits and a line number.
    """

    def __init__(self) -> None:
        self._taken: dict[int, int] = {}

    def take(self, qid: str, line: RawLine) -> bool:
        """Note the qid of a line that can be used; whether it repeats an earlier one word for word.

        Raises LineError where an earlier line with the qid has other content.
        """
        content = _hash64(line.data)
        # One integer holds both the line number and the content: half the memory of a tuple.
        first = self._taken.setdefault(_hash64(qid.encode()), line.number << 64 | content)
        first_number = first >> 64
        if first_number == line.number:
            return False
        if first & (1 << 64) - 1 == content:
            return True
        raise repeated_qid(qid, line.number, first_number)


def _hash64(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())
