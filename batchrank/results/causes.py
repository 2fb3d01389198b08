"""Why queries of a run failed and windows fell back, counted by reason, with examples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import perm

from batchrank.ranking.replay import replay
from batchrank.store.queries import asked_queries, bad_queries, failed_queries
from batchrank.store.records import Run
from batchrank.store.store import Store

TIMEOUT = "timeout"
"""Why a query failed that was given up after `query_timeout`."""
_EXAMPLES = 3
_LOOKED_AT = 1000
"""Queries whose windows are read again to see why they fell back: the first of a run."""
_CHARACTERS = 120
_SAMPLE = 100


@dataclass(slots=True)
class Cause:
    """A reason, how often it applied, and the first places where it did.

    `of_input` are those that the line itself is to blame for, before any window was asked.
    """

    reason: str
    count: int = 0
    examples: list[str] = field(default_factory=list)
    of_input: bool = False

    def add(self, example: str) -> None:
        """Count one more."""
        self.count += 1
        if len(self.examples) < _EXAMPLES:
            self.examples.append(example)


async def failures(store: Store, run: Run) -> list[Cause]:
    """Why queries failed, the most frequent reason first."""
    causes: dict[str, Cause] = {}
    async for line, ranked in failed_queries(store, run.id):
        kind = ranked.error_kind or "unknown"
        cause = Cause(kind, of_input=kind != TIMEOUT and not ranked.tally.windows)
        causes.setdefault(kind, cause).add(f"line {line}: {ranked.error}")
    return _ordered(causes.values())


async def silences(store: Store, run: Run) -> list[Cause]:
    """What was said by servers in place of an answer, the most frequent first.

    Of the first 1,000 queries with a window that brought no ranking.
    """
    causes: dict[str, Cause] = {}
    for line, ranked in await bad_queries(store, run.id, _LOOKED_AT):
        for fault in ranked.faults:
            causes.setdefault(fault, Cause(fault)).add(f"query {ranked.qid} (line {line})")
    return _ordered(causes.values())


async def chance_of_repeating(store: Store, run: Run) -> float:
    """How often an answer would repeat the order of its prompt by chance, from 0 to 1.

    The mean of 1 over the number of orders in which as many documents could have been named; of
    up to 100 queries.
    """
    chances = [
        1 / perm(len(asked.window.shown), asked.permutation.named)
        for ranked in await asked_queries(store, run.id, _SAMPLE)
        for asked in await replay(ranked, run.settings, store)
        if asked.permutation.is_usable
    ]
    return sum(chances) / len(chances) if chances else 0.0


async def fallbacks(store: Store, run: Run) -> list[Cause]:
    """Why windows brought no ranking, the most frequent reason first.

    Of the first 1,000 queries with such a window: their answers are read again for it.
    """
    causes: dict[str, Cause] = {}
    for _, ranked in await bad_queries(store, run.id, _LOOKED_AT):
        for number, asked in enumerate(await replay(ranked, run.settings, store), 1):
            if asked.is_gone or asked.permutation.is_usable:
                continue
            reason = f"{asked.permutation.status} ({', '.join(asked.permutation.notes)})"
            said = asked.answer.text if asked.answer else asked.fault or ""
            causes.setdefault(reason, Cause(reason)).add(
                f"{ranked.qid}, window {number}: {said[:_CHARACTERS]!r}"
            )
    return _ordered(causes.values())


def _ordered(causes: Iterable[Cause]) -> list[Cause]:
    return sorted(causes, key=lambda cause: -cause.count)
