"""Rates of what a run does: over the last minute, and over all of its time in few points."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from batchrank.running.snapshot import Rates

_MINUTE = 60.0
_MOST_POINTS = 120


class Done(NamedTuple):
    """What was done by `now`, a second of a monotonic clock."""

    now: float
    queries: int
    calls: int
    prompt_tokens: int
    completion_tokens: int


class Trace:
    """Takes a sample now and then; keeps a minute of them, and at most 120 points of the rest."""

    def __init__(self, began: float) -> None:
        self.step = 1.0
        """Seconds between two points; doubled each time there are too many."""
        self._recent: deque[Done] = deque([Done(began, 0, 0, 0, 0)])
        self._points = [(began, 0)]

    def add(self, done: Done) -> Rates:
        """Note what is done; the rates over the minute before, or since the beginning."""
        recent = self._recent
        recent.append(done)
        while len(recent) > 2 and done.now - recent[1].now >= _MINUTE:
            recent.popleft()
        if done.now - self._points[-1][0] >= self.step * 0.99:
            self._points.append((done.now, done.calls))
            if len(self._points) > _MOST_POINTS:
                self.step *= 2
                self._points = self._points[::2]
        since = recent[0]
        seconds = done.now - since.now
        if seconds <= 0:
            return Rates()
        return Rates(*((new - old) / seconds for new, old in zip(done[1:], since[1:], strict=True)))

    @property
    def calls_a_second(self) -> tuple[float, ...]:
        """Of each step since the beginning."""
        pairs = zip(self._points, self._points[1:], strict=False)
        return tuple(round((b - a) / (then - now), 3) for (now, a), (then, b) in pairs)
