"""Splits an input into shards that do not depend on the order or the number of its lines."""

from __future__ import annotations

from collections.abc import Iterator

from batchrank.formats.lines import RawLine
from batchrank.formats.requests import qid_of
from batchrank.keys import short_hash
from batchrank.values import Shard


def of_shard(blocks: Iterator[list[RawLine]], shard: Shard) -> Iterator[list[RawLine]]:
    """The lines of `blocks` that belong to `shard`, with the numbers that they have in the whole.

    A line goes by the hash of its qid, so that all lines of one qid are in one shard; one in which
    no qid can be made out goes by the hash of its number.
    """
    for block in blocks:
        if kept := [raw for raw in block if _index(raw, shard.count) == shard.index]:
            yield kept


def _index(raw: RawLine, count: int) -> int:
    qid = qid_of(raw.data)
    return short_hash(str(raw.number) if qid is None else qid) % count
