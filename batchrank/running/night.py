"""When a run may begin, since another may hold the store, and when it has to end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from batchrank.errors import StoreInUseError
from batchrank.running.deadline import Night, next_deadline
from batchrank.running.stopping import Stopping
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.times import parse_clock, parse_duration
from batchrank.spec.walltime import told
from batchrank.store.history import open_nights
from batchrank.store.lock import store_lock
from batchrank.store.store import Store

_LOCK_SECONDS = 1.0
"""How often a store that is in use is tried again."""


async def hold_lock(
    spec: JobSpec, stopping: Stopping, say: Callable[[str], None], stack: AsyncExitStack
) -> None:
    """Hold the store's lock until `stack` is left; wait for it where the spec says so.

    Raises StoreInUseError where it does not, the reason to stop where there is one meanwhile.
    """
    waits = False
    while True:
        lock = store_lock(spec.store)
        try:
            await asyncio.to_thread(lock.__enter__)
        except StoreInUseError as error:
            if not spec.wait_for_lock:
                raise StoreInUseError(
                    f"{error}, or let the run wait with --wait-for-lock"
                ) from None
            if not waits:
                say(f"waiting: {error}")
            waits = True
            await stopping.unless(asyncio.sleep(_LOCK_SECONDS))
        else:
            stack.push(lock)
            return


async def night_before(store: Store, job: bytes, spec: JobSpec) -> Night | None:
    """The last night of the job with key `job` that left work, where none was finished since.

    Of those with the deadline of `spec`: a run by hand with another one leaves a night what it was.
    """
    if spec.deadline is None:
        return None
    clock = parse_clock(spec.deadline)
    nights = (Night(*found) for found in await open_nights(store, job))
    return next((night for night in nights if night.ends_at(clock)), None)


@dataclass(frozen=True, slots=True)
class End:
    """When a run has to end; moments are seconds since the epoch, None where there is no such.

    `deadline` is that of the clock, by which a night is known. `at` is when the last can be sent,
    `seconds` the time until then that is not quiet. `refusal` says why nothing can be sent at all,
    `late` why no more is sent once the time is up, `note` what may not be as expected.
    """

    deadline: float | None = None
    at: float | None = None
    seconds: float | None = None
    refusal: str | None = None
    note: str | None = None
    late: str = "the time is up; queries that were open go on next time"


def end_of(spec: JobSpec, begun: float, now: float, last: Night | None) -> End:
    """The end of a run that began at `begun`, as it is seen `now`, after the night `last`."""
    deadline = limit = None
    if spec.deadline is not None:
        # Decided when the run began: it may have waited for the store beyond its own deadline.
        deadline = next_deadline(parse_clock(spec.deadline), begun, last)
    if spec.time_limit is not None:
        limit = begun + parse_duration(spec.time_limit)
    if deadline is None and limit is None:
        return End()
    ends = min(moment for moment in (deadline, limit) if moment is not None)
    what = f"--deadline {spec.deadline}" if ends == deadline else f"--time-limit {spec.time_limit}"
    if ends <= now:
        refusal = None
        if ends == deadline:
            night = Night(begun, ends) if last is None else last
            refusal = (
                f"{what} of this night has passed; from {told(night.over, now)} on the same "
                "command begins the next night"
            )
        return End(deadline, ends, 0.0, refusal)
    hours = spec.hours_of_quiet
    if hours is None:
        return End(deadline, ends, ends - now)
    at = hours.last_moment(now, ends)
    seconds = hours.seconds_between(now, at)
    if at == now:
        until = told(hours.until(now) or ends, now)
        refusal = f"quiet hours until {until} last beyond {what}: nothing can be sent before it"
        return End(deadline, at, 0.0, refusal)
    if at == ends:
        return End(deadline, at, seconds)
    within = f"{what} ends within the quiet hours {spec.quiet_hours}"
    return End(
        deadline,
        at,
        seconds,
        note=f"{within}: nothing is sent after {told(at, now)}",
        late=f"quiet hours have begun and {within}; queries that were open go on next time",
    )
