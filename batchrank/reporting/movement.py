"""How far documents moved, counted query by query; and an even sample of queries on the way."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Generic, TypeVar

from batchrank.metrics.agreement import kendall
from batchrank.reporting.facts import BANDS, TOP, Movement
from batchrank.values import RankedQuery

T = TypeVar("T")
_LAST_RANKS = tuple(last for _, last in BANDS if last is not None)


def fresh(ranked: RankedQuery) -> int:
    """How many documents of a query's top were not in the first stage's."""
    top = ranked.order[:TOP]
    return sum(place >= len(top) for place in top)


def tau(ranked: RankedQuery) -> float | None:
    """Kendall's tau between a query's first stage and its ranking."""
    return kendall(ranked.docids, ranked.ranking)


class Moved:
    """Counts what moved; `most` are the few queries that moved most, the most first, by qid."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._most: list[tuple[int, float, str]] = []
        self._queries = self._unchanged = self._new_first = 0
        self._origins = [0] * len(BANDS)
        self._fresh = [0] * (TOP + 1)
        self._taus = 0.0
        self._with_tau = 0

    def add(self, ranked: RankedQuery) -> None:
        """Count a query that a model ranked."""
        new, agreement = fresh(ranked), tau(ranked)
        self._queries += 1
        self._unchanged += ranked.order == tuple(sorted(ranked.order))
        self._new_first += ranked.order[:1] != (0,)
        self._fresh[new] += 1
        for place in ranked.order[:TOP]:
            self._origins[bisect_left(_LAST_RANKS, place + 1)] += 1
        if agreement is not None:
            self._taus += agreement
            self._with_tau += 1
            insort(self._most, (-new, agreement, ranked.qid))
            del self._most[self._keep :]

    @property
    def most(self) -> list[str]:
        """See the class; a query whose order is the first stage's did not move."""
        return [qid for new, agreement, qid in self._most if new or agreement < 1]

    def result(self) -> Movement:
        """What was counted."""
        return Movement(
            self._queries,
            self._unchanged,
            self._new_first,
            self._taus / self._with_tau if self._with_tau else None,
            tuple(self._origins),
            tuple(self._fresh),
        )


class EvenSample(Generic[T]):
    """Keeps every n-th of the items that come, at most `most` of them, without knowing how many."""

    def __init__(self, most: int) -> None:
        self.items: list[T] = []
        self._most = most
        self._stride = 1
        self._seen = 0

    def add(self, item: T) -> None:
        """Keep it or not."""
        if self._seen % self._stride == 0:
            self.items.append(item)
            if len(self.items) > self._most:
                self.items = self.items[::2]
                self._stride *= 2
        self._seen += 1
