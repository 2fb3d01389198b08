"""Says which day's night a run is about, for the `{date}` in its files' names; what broke off."""

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
    if today == yesterday:
        return today
    last = await _run_of_the_night(yesterday, today, now)
    return today if last is None or _is_ended(yesterday, last) else yesterday


async def broken_off(today: JobSpec, yesterday: JobSpec, now: float) -> Run | None:
    """The run of a night that was begun and that something broke off, so that it is to go on.

    None also where its time was up: what it left goes first in the next. `now` as above.
    """
    for spec, other in ((today, yesterday), (yesterday, today)):
        last = await _run_of_the_night(spec, other, now)
        if last is not None and not _is_ended(spec, last, may_be_short=True):
            return last
    return None


def _is_ended(spec: JobSpec, run: Run, *, may_be_short: bool = False) -> bool:
    """Whether a run came to its end, and every step after it that is due."""
    if run.exit == RejectedError.exit_code:
        return True
    # Of runs that were stopped those may be published whose time was up.
    short = may_be_short and run.summary is not None and bool(run.summary.get("publishable"))
    steps = [run.steps.get(name, FAILED) for name in steps_of(spec)]
    return (run.exit == 0 or short) and not any(told.startswith(UNDONE) for told in steps)


async def _run_of_the_night(spec: JobSpec, other: JobSpec, now: float) -> Run | None:
    """The store's latest run, where it began this night and was about the files of `spec`."""
    try:
        if not await asyncio.to_thread(is_there, spec.store):
            return None
        store = await Store.open(spec.store)
    except BatchrankError:
        return None  # said, with its remedy, when the run itself opens its store
    async with store:
        runs = await store.runs()
    if not runs or now - runs[0].started >= SAME_NIGHT_SECONDS:
        return None
    return runs[0] if _is_about(runs[0], spec, other) else None


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
