"""How long the queries of a run take, and whether one more can be finished in time."""

from __future__ import annotations

from time import monotonic

_ENOUGH_TO_JUDGE = 8
"""Finished queries before the pace of a job is trusted."""
_SMOOTHING = 1 / 8
_DEVIATIONS = 1.0
"""Few: a query that is too late after all loses nothing, its answers are in the store."""


class WorkClock:
    """Seconds on a clock that never jumps, and that stands while it is paused."""

    def __init__(self) -> None:
        self._lost = 0.0
        self._paused_at: float | None = None

    @property
    def now(self) -> float:
        """Seconds from any beginning."""
        running = monotonic() if self._paused_at is None else self._paused_at
        return running - self._lost

    @property
    def paused(self) -> float:
        """Seconds for which it stood so far."""
        return self._lost + (0.0 if self._paused_at is None else monotonic() - self._paused_at)

    def pause(self) -> None:
        """Stand until `resume`."""
        if self._paused_at is None:
            self._paused_at = monotonic()

    def resume(self) -> None:
        """Go on."""
        self._lost, self._paused_at = self.paused, None


class Pace:
    """Learns how long queries take.

    `seconds` is the time on `clock` that is left when it is made, None where there is no end.
    A query's time is estimated as TCP does its time-out, by a smoothed mean and mean deviation
    (Jacobson 1988; RFC 6298), so that it follows a server that slows down.
    """

    def __init__(self, seconds: float | None, clock: WorkClock | None = None) -> None:
        self._clock = clock or WorkClock()
        self._end = None if seconds is None else self._clock.now + seconds
        self._mean: float | None = None
        self._deviation = 0.0
        self._first_finish: float | None = None
        self._finished = 0

    @property
    def left(self) -> float | None:
        """Seconds until the end, below 0 after it; None where there is none."""
        return None if self._end is None else self._end - self._clock.now

    @property
    def has_room(self) -> bool:
        """Whether a query that starts now can be finished; of the first nothing is known."""
        if (left := self.left) is None:
            return True
        return left > (self._mean or 0.0) + _DEVIATIONS * self._deviation

    def start(self) -> float:
        """Note that a query starts; what is returned is for `finish`."""
        return self._clock.now

    def finish(self, started: float) -> float:
        """Note that a query that started then is finished; the seconds it took."""
        now = self._clock.now
        seconds = now - started
        self._finished += 1
        self._first_finish = self._first_finish or now
        if self._mean is None:
            self._mean, self._deviation = seconds, seconds / 2
        else:
            error = seconds - self._mean
            self._deviation += _SMOOTHING * 2 * (abs(error) - self._deviation)
            self._mean += _SMOOTHING * error
        return seconds

    def misses(self, unfinished: int) -> bool:
        """Whether so many queries will not be finished in time, at the pace since the first was."""
        left = self.left
        if left is None or self._first_finish is None or self._finished < _ENOUGH_TO_JUDGE:
            return False
        return unfinished * (self._clock.now - self._first_finish) / (self._finished - 1) > left
