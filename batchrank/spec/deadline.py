"""When a night must end, how long its queries take, and whether one more can be finished."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from time import monotonic

from batchrank.errors import UsageError
from batchrank.spec.wall import local, moment_of

_DURATION = re.compile("".join(rf"(?:(\d+(?:\.\d+)?){unit})?" for unit in "dhms"))
_LONGEST_SECONDS = 3650 * 86_400.0
_DAY = timedelta(hours=23)
"""A job that starts every day is in its next night by then; an hour is left for a late start."""
_AFTERWARDS = timedelta(hours=12)
"""So long after a deadline the next one is the nearer: also the night that began late is over."""
_ENOUGH_TO_JUDGE = 8
"""Finished queries before the pace of a job is trusted."""
_SMOOTHING = 1 / 8
_DEVIATIONS = 1.0
"""Few: a query that is too late after all loses nothing, its answers are in the store."""


def parse_clock(text: str) -> time:
    """Read a time of day such as `06:00`, local; UsageError for anything else."""
    try:
        return datetime.strptime(text.strip(), "%H:%M").time()  # noqa: DTZ007 - a time of day
    except ValueError:
        raise UsageError(f"deadline {text!r} is no time of day: write it like 06:00") from None


def parse_duration(text: str) -> float:
    """Read a duration such as `14d`, `1h30m` or `45s` as seconds; UsageError for anything else."""
    found = _DURATION.fullmatch(text.strip())
    if found is None or not any(found.groups()):
        raise UsageError(f"{text!r} is no duration: write it like 14d, 3h, 1h30m or 45s")
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    total = days * 86_400 + hours * 3600 + minutes * 60 + seconds
    if total > _LONGEST_SECONDS:
        raise UsageError(f"the duration {text[:60]!r} is too long: at most 3650d")
    return total


@dataclass(frozen=True, slots=True)
class Night:
    """An earlier night of a job that left work: its start and deadline, seconds since the epoch."""

    begun: float
    deadline: float

    @property
    def over(self) -> float:
        """From when on the same command belongs to the next night.

        By the clock on the wall, so that the night in which the clocks change is no exception.
        """
        begun, deadline = (
            local(moment).replace(tzinfo=None) for moment in (self.begun, self.deadline)
        )
        over = min(begun + _DAY, deadline + _AFTERWARDS)
        return moment_of(over.date(), over.time())

    def ends_at(self, clock: time) -> bool:
        """Whether its deadline was at this time of day."""
        return moment_of(local(self.deadline).date(), clock) == self.deadline


def next_deadline(clock: time, now: float, last: Night | None) -> float:
    """When `clock` is next, as seconds since the epoch; in the past where the night is over.

    A deadline belongs to the night it was set for. Where the last night of the job ended at the
    same time of day and the next has not begun, this is that night still.
    """
    if last is not None and last.deadline <= now < last.over and last.ends_at(clock):
        return last.deadline
    today = local(now).date()
    for day in (today, today + timedelta(days=1)):
        at = moment_of(day, clock)
        if at > now:
            break
    return at


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
