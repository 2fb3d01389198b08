"""When a run may begin, since another may hold the store, and when it has to end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

from batchrank.errors import StoreInUseError
from batchrank.running.stopping import Stopping
from batchrank.spec.deadline import Night, next_deadline, parse_clock, parse_duration
from batchrank.spec.jobspec import JobSpec
from batchrank.store.history import last_night
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


async def deadline_of(spec: JobSpec, store: Store, job: bytes, now: float) -> float | None:
    """When a run of the job with key `job` that begins `now` has to end; None: it may take all day.

    All times are seconds since the epoch.
    """
    ends: list[float] = []
    if spec.time_limit is not None:
        ends.append(now + parse_duration(spec.time_limit))
    if spec.deadline is not None:
        last = await last_night(store, job)
        night = Night(*last) if last else None
        ends.append(next_deadline(parse_clock(spec.deadline), now, night))
    return min(ends, default=None)
