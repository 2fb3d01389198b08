"""Says which day's night a run is about, for the `{date}` in the names of its files."""

from __future__ import annotations

import asyncio

from batchrank.errors import BatchrankError, RejectedError
from batchrank.formats.wording import displayable
from batchrank.spec.jobspec import JobSpec
from batchrank.store.connection import is_there
from batchrank.store.store import Store

_SAME_NIGHT_SECONDS = 18 * 3600.0
"""A night that began earlier is over, whether or not it came to its end: the next one begins."""
_ENDED = (0, RejectedError.exit_code)


async def spec_of_the_night(today: JobSpec, yesterday: JobSpec, now: float) -> JobSpec:
    """Today's spec, or that of yesterday where last night's run is still to be finished.

    They differ in the day in names of files. A job that is killed, or stopped by its deadline, and
    started again after midnight goes on with the files it began with. `now` is in seconds since the
    epoch.
    """
    goes_on = today != yesterday and await _is_unfinished(yesterday, now)
    return yesterday if goes_on else today


async def _is_unfinished(spec: JobSpec, now: float) -> bool:
    """Whether the store's latest run was about the files of this spec and did not end."""
    try:
        if not await asyncio.to_thread(is_there, spec.store):
            return False
        store = await Store.open(spec.store)
    except BatchrankError:
        return False  # said, with its remedy, when the run itself opens its store
    try:
        runs = await store.runs()
    finally:
        await store.close()
    if not runs or now - runs[0].started >= _SAME_NIGHT_SECONDS or runs[0].exit in _ENDED:
        return False
    return all(
        mine is None or displayable(mine) == its
        for mine, its in ((spec.input, runs[0].input), (spec.output, runs[0].output))
    )
