"""When a night must end, and to which night a moment belongs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import time, timedelta

from batchrank.spec.walltime import local, moment_of

_DAY = timedelta(hours=23)
"""A job that starts every day is in its next night by then; an hour is left for a late start."""
_AFTERWARDS = timedelta(hours=12)
"""So long after a deadline the next one is the nearer: also the night that began late is over."""


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
