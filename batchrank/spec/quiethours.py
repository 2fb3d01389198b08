"""Hours of the day in which a job leaves the servers to people."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import time, timedelta

from batchrank.errors import UsageError
from batchrank.spec.walltime import local, moments_of

_HOURS = re.compile(r"(\d{1,2}):(\d\d)\s*-\s*(\d{1,2}):(\d\d)")
_MIDNIGHT = (24, 0)
"""The end of a day, as hours may be written."""


@dataclass(frozen=True, slots=True)
class QuietHours:
    """From `start` until before `end`, over midnight where `end` is the earlier one; local time.

    Moments are seconds since the epoch. Where a change of clocks repeats a bound or leaves it out,
    the hours are the longer ones.
    """

    start: time
    end: time

    def until(self, now: float) -> float | None:
        """When those that are now end; None where it is none of them."""
        end = now
        for begin, until in self._spans(now):
            if begin > end:
                break
            end = until
        return end if end > now else None

    def next_start(self, now: float) -> float:
        """When the next ones after `now` begin."""
        return next(begin for begin, _ in self._spans(now) if begin > now)

    def last_moment(self, now: float, end: float) -> float:
        """When the last before `end` can be sent: `end`, or when the hours around it begin."""
        for begin, until in self._spans(now):
            if begin >= end:
                break
            if until >= end:
                return max(begin, now)
        return end

    def seconds_between(self, now: float, end: float) -> float:
        """How much of the time from `now` to `end` is not quiet."""
        seconds = 0.0
        for begin, until in self._spans(now):
            seconds += max(0.0, min(begin, end) - now)
            now = max(now, until)
            if now >= end:
                break
        return seconds

    def after(self, now: float, seconds: float) -> float:
        """When so many seconds that are not quiet have passed since `now`."""
        for begin, until in self._spans(now):
            room = max(0.0, begin - now)
            if seconds <= room:
                break
            seconds -= room
            now = max(now, until)
        return now + seconds

    def _spans(self, since: float) -> Iterator[tuple[float, float]]:
        """Begin and end of those that end after `since`, one after another without end."""
        day = local(since).date() - timedelta(days=1)
        nights = timedelta(days=int(self.end <= self.start))
        while True:
            begin, _ = moments_of(day, self.start)
            _, end = moments_of(day + nights, self.end)
            if end > since:
                yield begin, end
            day += timedelta(days=1)


def parse_quiet_hours(text: str) -> QuietHours:
    """Read hours such as `08:00-20:00`, to `24:00` at most; UsageError for anything else."""
    found = _HOURS.fullmatch(text.strip())
    if found is None:
        raise _no_hours(text)
    hour, minute, until_hour, until_minute = map(int, found.groups())
    if (until_hour, until_minute) == _MIDNIGHT:
        until_hour = 0
    try:
        hours = QuietHours(time(hour, minute), time(until_hour, until_minute))
    except ValueError:  # no hour has 60 minutes
        raise _no_hours(text) from None
    if hours.start == hours.end:
        raise UsageError(
            f"quiet hours {text!r} are a whole day, so that nothing could ever be sent: "
            "leave a part of the day, as 08:00-20:00 does"
        )
    return hours


def _no_hours(text: str) -> UsageError:
    return UsageError(f"quiet hours {text!r} are no hours of a day: write them like 08:00-20:00")
