"""What the answers of a run took, those it paid for apart from those that were there before."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from batchrank.calls import Usage
from batchrank.store.connection import connect, store_errors

_CALLS = """
    SELECT run IN (SELECT value FROM json_each(:runs)) AS paid,
           count(*), sum(prompt_tokens), sum(completion_tokens), sum(seconds)
    FROM answers
    WHERE run IN (SELECT value FROM json_each(:runs))
       OR id IN (SELECT value FROM json_each(:answers))
    GROUP BY paid
"""


@dataclass(frozen=True, slots=True)
class Calls:
    """Answered calls: `seconds` is the sum of the times from sending to the last byte."""

    number: int = 0
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0


async def count_gone(path: Path, answers: Collection[int]) -> int:
    """How many of `answers` (numbers) are no longer there, asked anew. Raises StoreError."""
    numbers = orjson.dumps(list(answers)).decode()
    connection = await connect(path, create=False)
    try:
        with store_errors(path):
            ((kept,),) = await connection.execute_fetchall(
                "SELECT count(*) FROM answers WHERE id IN (SELECT value FROM json_each(?))",
                (numbers,),
            )
    finally:
        await connection.close()
    return len(answers) - int(kept)


async def read_calls(
    path: Path, runs: Iterable[int], answers: Iterable[int]
) -> tuple[Calls, Calls]:
    """The calls that `runs` paid for, and those of `answers` (numbers) that other runs had paid.

    Raises StoreError.
    """
    parameters = {
        "runs": orjson.dumps(list(runs)).decode(),
        "answers": orjson.dumps(list(answers)).decode(),
    }
    connection = await connect(path, create=False)
    try:
        with store_errors(path):
            rows = list(await connection.execute_fetchall(_CALLS, parameters))
    finally:
        await connection.close()
    calls = {
        bool(paid): Calls(number, Usage(prompt, completion), seconds)
        for paid, number, prompt, completion, seconds in rows
    }
    return calls.get(True, Calls()), calls.get(False, Calls())
