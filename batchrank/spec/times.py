"""Times of day and durations, as people write them."""

from __future__ import annotations

import re
from datetime import datetime, time

from batchrank.errors import UsageError

_DURATION = re.compile("".join(rf"(?:(\d+(?:\.\d+)?){unit})?" for unit in "dhms"))
_LONGEST_SECONDS = 3650 * 86_400.0


def parse_clock(text: str, what: str = "deadline") -> time:
    """Read a time of day such as `06:00`, local; UsageError names `what` it is where it is none."""
    try:
        return datetime.strptime(text.strip(), "%H:%M").time()  # noqa: DTZ007 - a time of day
    except ValueError:
        raise UsageError(f"{what} {text!r} is no time of day: write it like 06:00") from None


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
