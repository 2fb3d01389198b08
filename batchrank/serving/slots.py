"""Lets so many calls through at once, the most urgent first, each to the least loaded server."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import count
from typing import Generic, Protocol, TypeVar

from batchrank.errors import StoppedError

Priority = tuple[int, int]
"""Smaller goes first: (−round, query), so that a merge goes before a new segment.

Once no query follows, the round's sign turns: `Slots.finish`."""


class Lane(Protocol):
    """Where calls go: `limit` at once (0: none now), `weight` times what another would get."""

    in_flight: int
    weight: float

    @property
    def limit(self) -> int:
        """May change at any time; where it grows, `Slots.fill` is to be called."""


L = TypeVar("L", bound=Lane)


class _Slot(Generic[L]):
    """Held while its context lasts, which is its lane."""

    def __init__(self, acquire: Callable[[], Awaitable[L]], release: Callable[[L], None]) -> None:
        self._acquire = acquire
        self._release = release

    async def __aenter__(self) -> L:
        self._lane = await self._acquire()
        return self._lane

    async def __aexit__(self, *_: object) -> None:
        self._release(self._lane)


class Slots(Generic[L]):
    """Calls in flight in several lanes, `most` in all, and those that wait for their turn."""

    def __init__(self, lanes: Sequence[L], most: int | None = None) -> None:
        self._lanes = lanes
        self._most = most
        self._heap: list[tuple[Priority, int, asyncio.Future[L], L | None]] = []
        self._order = count()
        self._held = False
        self._by_most_left = False
        self._stopped: Exception | None = None

    @property
    def capacity(self) -> int:
        """How many calls may be in flight."""
        if self._held:
            return 0
        limits = sum(lane.limit for lane in self._lanes)
        return limits if self._most is None else min(limits, self._most)

    @property
    def in_flight(self) -> int:
        """How many are."""
        return sum(lane.in_flight for lane in self._lanes)

    def slot(self, priority: Priority, avoid: L | None = None) -> _Slot[L]:
        """Hold one slot, not in the lane to `avoid` while another takes calls.

        Raises what `stop` was called with where that was before one was free.
        """
        return _Slot(partial(self._acquire, priority, avoid), self._release)

    def has_other(self, lane: L) -> bool:
        """Whether a lane beside this one takes calls."""
        return any(other.limit > 0 for other in self._lanes if other is not lane)

    def hold(self) -> None:
        """Let no more through until `fill`."""
        self._held = True

    def fill(self) -> None:
        """Let through what fits now: after limits have grown, or calls were held."""
        self._held = False
        for lane in self._lanes:
            self._fill(lane)

    def finish(self) -> None:
        """From now on let the earliest rounds go first, as no query follows those that wait.

        Then those that have most left are not left over to end one after the other in a few slots
        (highest level first: T. C. Hu, Operations Research 9, 1961).
        """
        if not self._by_most_left:
            self._by_most_left = True
            self._heap = [(self._turn(entry[0]), *entry[1:]) for entry in self._heap]
            heapq.heapify(self._heap)

    def stop(self, error: Exception | None = None) -> None:
        """Send home all who wait and all who come; those in flight go on."""
        self._stopped = self._stopped or error or StoppedError("stopped before it was sent")
        for _, _, future, _ in self._heap:
            if not future.done():
                future.set_exception(self._stopped)
        self._heap.clear()

    async def _acquire(self, priority: Priority, avoid: L | None) -> L:
        if self._stopped is not None:
            raise self._stopped
        lane = self._free(avoid)
        if lane is not None:
            lane.in_flight += 1
            return lane
        future: asyncio.Future[L] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._heap, (self._turn(priority), next(self._order), future, avoid))
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self._release(future.result())
            raise

    def _turn(self, priority: Priority) -> Priority:
        before, query = priority
        return (-before, query) if self._by_most_left else priority

    def _free(self, avoid: L | None) -> L | None:
        """The least loaded lane with room, by what each may have and its weight."""
        if self._held or self._is_full():
            return None
        best, least = None, 0.0
        for lane in self._lanes:
            limit = lane.limit
            if lane.in_flight >= limit or (lane is avoid and self.has_other(lane)):
                continue
            load = lane.in_flight / (limit * lane.weight)
            if best is None or load < least:
                best, least = lane, load
        return best

    def _release(self, lane: L) -> None:
        # A slot is handed over, not freed, so that nobody who comes now overtakes.
        lane.in_flight -= 1
        self._fill(lane)
        if self._most is not None:  # where this lane is closed, another has the room
            for other in self._lanes:
                self._fill(other)

    def _is_full(self) -> bool:
        return self._most is not None and self.in_flight >= self._most

    def _fill(self, lane: L) -> None:
        elsewhere = []
        while self._heap and not self._held and lane.in_flight < lane.limit and not self._is_full():
            entry = heapq.heappop(self._heap)
            _, _, future, avoid = entry
            if future.done():
                continue
            if avoid is lane and self.has_other(lane):
                elsewhere.append(entry)
                continue
            lane.in_flight += 1
            future.set_result(lane)
        for entry in elsewhere:
            heapq.heappush(self._heap, entry)
