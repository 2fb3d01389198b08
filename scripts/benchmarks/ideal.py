"""What a scheduler without overhead would reach: a simulation of `segmented` on slots."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

SEGMENTS = 5
"""Windows of the first round; one merge follows."""


def ideal_rate(slots: int, latencies: Iterable[float], queries: int) -> float:
    """Calls a second where slots never wait for the client and merges go before segments.

    `latencies` are seconds, one a call, in the order of sending; failures take no time.
    """
    drawn = iter(latencies)
    ready: list[tuple[int, int]] = []
    waiting = iter(range(queries))
    left = [SEGMENTS] * queries
    free = slots
    at_work: list[tuple[float, int, int]] = []
    now, ended = 0.0, []
    while True:
        while free:
            if not ready:
                query = next(waiting, None)
                if query is None:
                    break
                ready += [(0, query)] * SEGMENTS
                heapq.heapify(ready)
            number, query = heapq.heappop(ready)
            heapq.heappush(at_work, (now + next(drawn), number, query))
            free -= 1
        if not at_work:
            break
        now, number, query = heapq.heappop(at_work)
        ended.append(now)
        free += 1
        left[query] -= number == 0
        if number == 0 and not left[query]:
            heapq.heappush(ready, (-1, query))
    return rate_of(ended)


def rate_of(times: Sequence[float]) -> float:
    """Of calls that ended then, in order; the first 2% find empty slots."""
    skipped = len(times) // 50
    return (len(times) - 1 - skipped) / (times[-1] - times[skipped])
