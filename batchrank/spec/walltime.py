"""Times of day on the wall, local, and the moments they stand for in seconds since the epoch."""

from __future__ import annotations

from datetime import UTC, date, datetime, time


def local(moment: float) -> datetime:
    """The local date and time of a moment."""
    return datetime.fromtimestamp(moment, UTC).astimezone()


def moment_of(day: date, clock: time) -> float:
    """When it is `clock` on a day.

    Of a time that a change of clocks repeats, the first; one that it leaves out, an hour later.
    """
    return datetime.combine(day, clock).timestamp()


def moments_of(day: date, clock: time) -> tuple[float, float]:
    """The earliest and the latest moment that a time can stand for.

    They differ where a change of clocks repeats the time or leaves it out.
    """
    both = [moment_of(day, clock.replace(fold=fold)) for fold in (0, 1)]
    return min(both), max(both)


def told(moment: float, now: float) -> str:
    """The time of a moment as a person says it: 20:00, or Tue 06:00 where it is another day."""
    at = local(moment)
    return f"{at:%H:%M}" if at.date() == local(now).date() else f"{at:%a %H:%M}"
