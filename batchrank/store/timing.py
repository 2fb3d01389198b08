"""How long the answers of runs took."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import orjson

from batchrank.store.store import Store

_CHUNK = 20_000


async def answer_seconds(store: Store, runs: Iterable[int]) -> array[float]:
    """Seconds of every answer that these runs paid for, in the order in which they came."""
    paid = orjson.dumps(list(runs)).decode()
    seconds = array("d")
    after = 0
    while rows := await store.select(
        "SELECT id, seconds FROM answers WHERE id > ? "
        "AND run IN (SELECT value FROM json_each(?)) ORDER BY id LIMIT ?",
        (after, paid, _CHUNK),
    ):
        after = rows[-1][0]
        seconds.extend(row[1] for row in rows)
    return seconds
