"""Hours of the day in which a job leaves the servers to people."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, time, timedelta

from batchrank.errors import UsageError

_HOURS = re.compile(r"(\d{1,2}):(\d\d)\s*-\s*(\d{1,2}):(\d\d)")


@dataclass(frozen=True, slots=True)
class QuietHours:
    """From `start` until before `end`, over midnight where `end` is the earlier one; local time."""

    start: time
    end: time

    def left(self, now: datetime) -> timedelta | None:
        """How long they last from `now` on; None where it is none of them."""
        clock = now.time().replace(tzinfo=None)
        if self.start <= self.end:
            quiet = self.start <= clock < self.end
        else:
            quiet = clock >= self.start or clock < self.end
        if not quiet:
            return None
        ends = now.replace(hour=self.end.hour, minute=self.end.minute, second=0, microsecond=0)
        return ends - now if clock < self.end else ends + timedelta(days=1) - now


def parse_quiet_hours(text: str) -> QuietHours:
    """Read hours such as `08:00-20:00`; UsageError for anything else."""
    found = _HOURS.fullmatch(text.strip())
    try:
        if found is not None:
            hour, minute, until_hour, until_minute = map(int, found.groups())
            hours = QuietHours(time(hour, minute), time(until_hour, until_minute))
            if hours.start != hours.end:
                return hours
    except ValueError:
        pass  # no hour has 60 minutes
    raise UsageError(f"quiet hours {text!r} are no hours of a day: write them like 08:00-20:00")
