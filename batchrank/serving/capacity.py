"""Finds how many calls a server works on at once: as many as its throughput still grows with.

Known slots and a number that was asked for are taken as they are. Otherwise the limit doubles while
the rate of answers follows (as TCP's slow start), then stays a little above the knee, found from
two measured rates by a straight line: below the knee the rate is proportional to the limit. From
time to time it looks up and down again. What a server turns away or answers too late halves it
(AIMD; Chiu and Jain 1989). Latency alone says nothing: it grows with the batch long before the
throughput ends, and differs from prompt to prompt.
"""

from __future__ import annotations

from enum import Enum, auto

from batchrank.calls import ServerInfo

_HEADROOM = 1.2
"""Calls above the knee, so that no slot waits for us; an error of a fifth costs nothing."""
_FIRST_STEP = 2.0
_STEP = 1.5
_GROWING = 0.5
"""The part of a step that the rate must follow for the knee to lie higher still."""
_FLAT = 1.2
_CALLS_A_SLOT = 6
"""Calls that finish in clumps are miscounted by a clump: at most by one in six."""
_CALLS_BY_SPREAD = 200
"""Calls for a rate within a tenth where latencies spread as much as their mean (2·c²/n = 0.1²)."""
_MOST_CALLS = 1000
_FULL = 0.9
_HELD_SAMPLES = 16
_UNTOLD_START = {"ollama": 4}
"""Calls in flight to begin with where the server doesn't say; 16 for all others."""
_MOST = {"ollama": 512}
"""Ollama refuses what goes beyond its queue of 512; 1,024 for all others."""


class _Phase(Enum):
    CLIMB = auto()
    DESCEND = auto()
    HOLD = auto()


class _Sample:
    """Calls answered at one limit; the first of them were still sent under the last limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._settling = limit
        self._began = 0.0
        self._calls = self._full = 0
        self._sum = self._squares = 0.0

    def add(self, now: float, seconds: float, *, full: bool) -> float | None:
        """Note an answer; the rate in calls a second once enough are known, 0 where it is void."""
        if self._settling > 0:
            self._settling -= 1
            self._began = now
            return None
        self._calls += 1
        self._full += full
        self._sum += seconds
        self._squares += seconds * seconds
        if self._calls < self._limit * _CALLS_A_SLOT or now <= self._began:
            return None
        mean = self._sum / self._calls
        spread = self._squares / self._calls / (mean * mean) - 1 if mean else 0.0
        if self._calls < min(_CALLS_BY_SPREAD * spread, _MOST_CALLS):
            return None
        if self._full < _FULL * self._calls:
            return 0.0  # there was not enough to send: it says nothing about the server
        return self._calls / (now - self._began)


class Capacity:
    """The number of calls one server may have in flight: `limit`, between 1 and `most`."""

    def __init__(self, start: int, most: int) -> None:
        self.limit = min(start, most)
        self.generation = 0
        """Counts changes for the worse: what was sent before the last says nothing new."""
        self._most = most
        self._ceiling = most
        self._phase = _Phase.CLIMB
        self._step = _FIRST_STEP
        self._base: tuple[int, float] | None = None
        self._best = 0.0
        self._held = 0
        self._sample = _Sample(self.limit)

    def answered(self, now: float, seconds: float, *, full: bool) -> None:
        """A call came back after `seconds`; `full`: as many were in flight as were allowed."""
        rate = self._sample.add(now, seconds, full=full)
        if rate is None:
            return
        limit = self.limit
        if rate:
            self._learn(rate)
        if self.limit == limit or not rate:
            self._sample = _Sample(self.limit)

    def strained(self, generation: int) -> None:
        """It was too much: a call sent in `generation` was turned away or came too late."""
        if generation != self.generation:
            return
        self.generation += 1
        self._ceiling = max(1, self.limit * 3 // 4)
        self._phase = _Phase.CLIMB
        self._base = None
        self._set(self.limit // 2)

    def _learn(self, rate: float) -> None:
        if self._phase is _Phase.HOLD:
            self._base = (self.limit, rate)
            self._held += 1
            if self._held >= _HELD_SAMPLES:
                self._ceiling = min(self._most, self._ceiling * 11 // 10 + 1)
                self._climb(_STEP)
        elif self._phase is _Phase.CLIMB:
            self._climbed(rate)
        else:
            grown = self._best / rate
            if grown > _FLAT or self.limit == 1:
                self._hold(self.limit * grown)
            else:
                self._set(round(self.limit / _STEP))

    def _climbed(self, rate: float) -> None:
        """Compare with the rate at the limit below."""
        base, self._base = self._base, (self.limit, rate)
        if base is None or base[0] >= self.limit:
            self._climb(self._step)
            return
        wider, grown = self.limit / base[0], rate / base[1]
        if grown >= 1 + _GROWING * (wider - 1):
            self._climb(self._step)
            return
        self._best = max(rate, base[1])
        if grown > _FLAT:
            self._hold(base[0] * grown)
        else:
            self._phase = _Phase.DESCEND
            self._set(round(base[0] / _STEP))

    def _climb(self, step: float) -> None:
        self._step = step
        wider = min(self._ceiling, round(self.limit * step) + 1)
        if wider <= self.limit:
            self._start_holding()
        else:
            self._phase = _Phase.CLIMB
            self._set(wider)

    def _hold(self, knee: float) -> None:
        self._set(round(knee * _HEADROOM))
        self._start_holding()

    def _start_holding(self) -> None:
        self._phase = _Phase.HOLD
        self._held = 0

    def _set(self, limit: int) -> None:
        self.limit = max(1, min(limit, self._ceiling))
        self._sample = _Sample(self.limit)


class FixedCapacity(Capacity):
    """A limit that was asked for: nothing changes it."""

    def answered(self, now: float, seconds: float, *, full: bool) -> None:
        """See `Capacity.answered`."""

    def strained(self, generation: int) -> None:
        """See `Capacity.strained`."""


def to_fill(kind: str, slots: int | None) -> int:
    """Calls in flight to begin with: the slots of a server, and a few so that none waits for us."""
    if slots is None:
        return _UNTOLD_START.get(kind, 16)
    return slots + max(1, slots // 4)


def capacity_of(info: ServerInfo, fixed: int | None) -> Capacity:
    """The capacity of a server of some kind that tells its slots, or doesn't."""
    if fixed is not None:
        return FixedCapacity(fixed, fixed)
    start = to_fill(info.kind, info.slots)
    return Capacity(start, start if info.slots is not None else _MOST.get(info.kind, 1024))
