"""Rates of what a run does: over the last minute, and over all of its time in few points."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from batchrank.progress.snapshot import Rates
from batchrank.serving.stats import EndpointState

_MINUTE = 60.0
_MOST_POINTS = 120


class Done(NamedTuple):
    """What was done by `now`, a second of a monotonic clock, and the slots of that moment."""

    now: float
    queries: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    in_flight: int = 0
    capacity: int = 0


class _Point(NamedTuple):
    """Sums since the beginning; slots and capacity in seconds of one slot."""

    now: float
    calls: float
    used: float
    offered: float


class PaceByServer:
    """Keeps what each server had answered at the seconds of the last minute."""

    def __init__(self) -> None:
        self._recent: dict[str, deque[tuple[float, int]]] = {}

    def add(self, now: float, states: Iterable[EndpointState]) -> tuple[EndpointState, ...]:
        """Note the states of a second of a monotonic clock; they, each with its rate."""
        return tuple(replace(state, rate=self._rate(now, state)) for state in states)

    def _rate(self, now: float, state: EndpointState) -> float:
        recent = self._recent.setdefault(state.url, deque())
        recent.append((now, state.answered))
        while len(recent) > 2 and now - recent[1][0] >= _MINUTE:
            recent.popleft()
        since, answered = recent[0]
        return (state.answered - answered) / (now - since) if now > since else 0.0


class Trace:
    """Takes a sample now and then; keeps a minute of them, and at most 120 points of the rest."""

    def __init__(self, began: float) -> None:
        self.step = 1.0
        """Seconds between two points; doubled each time there are too many."""
        self._recent: deque[Done] = deque([Done(began, 0, 0, 0, 0)])
        self._points = [_Point(began, 0, 0, 0)]
        self._used = self._offered = 0.0

    def add(self, done: Done) -> Rates:
        """Note what is done; the rates over the minute before, or since the beginning."""
        recent = self._recent
        passed = done.now - recent[-1].now
        self._used += done.in_flight * passed
        self._offered += done.capacity * passed
        recent.append(done)
        while len(recent) > 2 and done.now - recent[1].now >= _MINUTE:
            recent.popleft()
        if done.now - self._points[-1].now >= self.step * 0.99:
            self._points.append(_Point(done.now, done.calls, self._used, self._offered))
            if len(self._points) > _MOST_POINTS:
                self.step *= 2
                self._points = self._points[::2]
        since = recent[0]
        seconds = done.now - since.now
        if seconds <= 0:
            return Rates()
        pairs = zip(done[1:5], since[1:5], strict=True)
        return Rates(*((new - old) / seconds for new, old in pairs))

    @property
    def calls_a_second(self) -> tuple[float, ...]:
        """Of each step since the beginning."""
        return self._means(1)

    def as_dict(self) -> dict[str, object]:
        """All that is kept of the time of a run: means of each `step` seconds."""
        return {
            "step": self.step,
            "calls_a_second": self._means(1),
            "in_flight": self._means(2),
            "capacity": self._means(3),
        }

    def _means(self, column: int) -> tuple[float, ...]:
        pairs = zip(self._points, self._points[1:], strict=False)
        return tuple(round((b[column] - a[column]) / (b.now - a.now), 3) for a, b in pairs)
