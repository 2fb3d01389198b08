"""Whether a result is good enough to replace yesterday's, and whether going on is any use."""

from __future__ import annotations

from batchrank.store.store import Totals
from batchrank.values import QueryStatus, Tally

_HOPELESS_WINDOWS = 50
_HOPELESS_SHARE = 0.95


def rejections(totals: Totals, max_fallback: float, max_failed: float) -> list[str]:
    """A sentence for each gate that a result does not pass; none where it is accepted."""
    reasons = []
    tally = totals.tally
    if tally.windows and tally.bad > max_fallback * tally.windows:
        reasons.append(
            f"{tally.bad} of {tally.windows} windows ({tally.bad / tally.windows:.1%}) brought no "
            f"usable ranking ({tally.fallback} unusable, {tally.error} unanswered, {tally.thin} "
            f"naming less than half of what was wanted); --max-fallback allows {max_fallback:.1%}"
        )
    queries = sum(totals.queries.values())
    failed = totals.queries.get(QueryStatus.FAILED, 0)
    if queries and failed > max_failed * queries:
        reasons.append(
            f"{failed} of {queries} queries ({failed / queries:.1%}) failed; --max-failed allows "
            f"{max_failed:.1%}"
        )
    return reasons


def is_hopeless(tally: Tally, max_fallback: float) -> bool:
    """Whether so nearly all of the first windows are unusable that going on would waste a night."""
    enough = tally.windows >= _HOPELESS_WINDOWS
    return enough and max_fallback < 1 and tally.bad >= _HOPELESS_SHARE * tally.windows
