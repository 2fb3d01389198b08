"""Says which day's night a run is about, for the `{date}` in the names of its files."""

from __future__ import annotations

import asyncio

from batchrank.errors import BatchrankError, RejectedError
from batchrank.formats.wording import displayable
from batchrank.nightly.after import FAILED, UNDONE, steps_of
from batchrank.spec.dates import names_of
from batchrank.spec.jobspec import JobSpec
from batchrank.store.connection import is_there
from batchrank.store.published import SAME_NIGHT_SECONDS
from batchrank.store.records import Run
from batchrank.store.store import Store


async def spec_of_the_night(today: JobSpec, yesterday: JobSpec, now: float) -> JobSpec:
    """Today's spec, or that of yesterday where last night's run is still to be finished.

    They differ in the day in names of files. A job that is killed, or stopped by its deadline, and
    started again after midnight goes on with the files it began with. `now` is in seconds since the
    epoch.
    """
    goes_on = today != yesterday and await _is_unfinished(yesterday, today, now)
    return yesterday if goes_on else today


def _is_ended(spec: JobSpec, run: Run) -> bool:
    """Whether a run came to its end, and every step after it that is due."""
    if run.exit == RejectedError.exit_code:
        return True
    steps = [run.steps.get(name, FAILED) for name in steps_of(spec)]
    return run.exit == 0 and not any(told.startswith(UNDONE) for told in steps)


async def _is_unfinished(yesterday: JobSpec, today: JobSpec, now: float) -> bool:
    """Whether the store's latest run was about yesterday's files, not today's, and did not end."""
    try:
        if not await asyncio.to_thread(is_there, yesterday.store):
            return False
        store = await Store.open(yesterday.store)
    except BatchrankError:
        return False  # said, with its remedy, when the run itself opens its store
    async with store:
        runs = await store.runs()
    if not runs or now - runs[0].started >= SAME_NIGHT_SECONDS or _is_ended(yesterday, runs[0]):
        return False
    return _is_about(runs[0], yesterday, today)


def _is_about(run: Run, spec: JobSpec, other: JobSpec) -> bool:
    """Whether a run was about the files of `spec`, by the names that tell it from `other`."""
    if not all(
        mine is None or displayable(mine) == its
        for mine, its in ((spec.input, run.input), (spec.output, run.output))
    ):
        return False
    # Of an older version's run no other names are known.
    telling = names_of(spec).items() - names_of(other).items() if run.names else ()
    return all(run.names.get(key) == name for key, name in telling)
