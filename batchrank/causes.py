"""Why queries of a run failed and windows fell back, counted by reason, with examples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from batchrank.replay import replay
from batchrank.store.history import bad_queries, failed_queries
from batchrank.store.store import Run, Store
from batchrank.values import Status

_EXAMPLES = 3
_LOOKED_AT = 1000
"""Queries whose windows are read again to see why they fell back: the first of a run."""
_CHARACTERS = 120


@dataclass(slots=True)
class Cause:
    """A reason, how often it applied, and the first places where it did."""

    reason: str
    count: int = 0
    examples: list[str] = field(default_factory=list)

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
        causes.setdefault(kind, Cause(kind)).add(f"line {line}: {ranked.error}")
    return _ordered(causes.values())


async def fallbacks(store: Store, run: Run) -> list[Cause]:
    """Why windows brought no ranking, the most frequent reason first.

    Of the first 1,000 queries with such a window: their answers are read again for it.
    """
    causes: dict[str, Cause] = {}
    for _, ranked in await bad_queries(store, run.id, _LOOKED_AT):
        for number, asked in enumerate(await replay(ranked, run.settings, store), 1):
            if asked.permutation.status in (Status.OK, Status.REPAIRED):
                continue
            reason = f"{asked.permutation.status} ({', '.join(asked.permutation.notes)})"
            said = asked.answer.text if asked.answer else asked.fault or ""
            causes.setdefault(reason, Cause(reason)).add(
                f"{ranked.qid}, window {number}: {said[:_CHARACTERS]!r}"
            )
    return _ordered(causes.values())


def _ordered(causes: Iterable[Cause]) -> list[Cause]:
    return sorted(causes, key=lambda cause: -cause.count)
