"""What the answers of runs took, those they paid for apart from those that were there before."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import orjson

from batchrank.calls import Usage
from batchrank.store.store import Store

_CALLS = """
    SELECT run IN (SELECT value FROM json_each(?1)) AS paid,
           count(*), sum(prompt_tokens), sum(completion_tokens), sum(seconds)
    FROM answers
    WHERE run IN (SELECT value FROM json_each(?1))
       OR id IN (SELECT value FROM json_each(?2))
    GROUP BY paid
"""
_CHUNK = 20_000


@dataclass(frozen=True, slots=True)
class Calls:
    """Answered calls: `seconds` is the sum of the times from sending to the last byte."""

    number: int = 0
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0


async def read_calls(
    store: Store, runs: Iterable[int], answers: Iterable[int]
) -> tuple[Calls, Calls]:
    """The calls that `runs` paid for, and those of `answers` (numbers) that other runs had paid.

    Raises StoreError.
    """
    calls = {
        bool(paid): Calls(number, Usage(prompt, completion), seconds)
        for paid, number, prompt, completion, seconds in await store.select(
            _CALLS, (_array(runs), _array(answers))
        )
    }
    return calls.get(True, Calls()), calls.get(False, Calls())


async def count_gone(store: Store, answers: Collection[int]) -> int:
    """How many of `answers` (numbers) are no longer there, asked anew. Raises StoreError."""
    ((kept,),) = await store.select(
        "SELECT count(*) FROM answers WHERE id IN (SELECT value FROM json_each(?))",
        (_array(answers),),
    )
    return len(answers) - int(kept)


async def answer_seconds(store: Store, runs: Iterable[int]) -> array[float]:
    """Seconds of every answer that these runs paid for, in the order in which they came."""
    paid = _array(runs)
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


def _array(numbers: Iterable[int]) -> str:
    """Any count of numbers as one parameter, for `json_each`."""
    return orjson.dumps(list(numbers)).decode()
