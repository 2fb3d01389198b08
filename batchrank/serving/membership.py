"""Takes in servers that come while a job runs, and lets go of those that leave."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from batchrank.backends.base import Backend
from batchrank.calls import ServerInfo
from batchrank.clock import Clock
from batchrank.errors import FatalServerError, ServerError
from batchrank.serving.endpoint import Endpoint
from batchrank.serving.pool import Pool

_ASKING_SECONDS = 2.0
"""Between two questions to a server that has come and does not answer yet."""


@dataclass(frozen=True, slots=True)
class Changed:
    """Servers that have come and servers that are gone."""

    came: tuple[Backend, ...]
    left: tuple[Backend, ...]


async def follow(
    pool: Pool,
    changes: AsyncIterator[Changed],
    identity: str,
    endpoint_of: Callable[[Backend, ServerInfo], Endpoint],
    say: Callable[[str], None],
    clock: Clock,
) -> None:
    """Keep the servers of `pool` up to date, until it stops.

    One that comes is asked what it is and has to be `identity`, as all others of the job; a
    completion proves it before it is used.
    """
    gone: set[Backend] = set()

    async def take_in(backend: Backend) -> None:
        while backend not in gone:
            try:
                info = await backend.describe()
            except FatalServerError as error:
                say(f"warning: {backend.url} can't be used and is left out: {error}")
                return
            except ServerError:
                await clock.sleep(_ASKING_SECONDS)
                continue
            if info.identity != identity:
                say(
                    f"warning: {backend.url} serves {info.identity} and not the job's model: it is "
                    "left out"
                )
                return
            say(f"{backend.url} has joined")
            pool.join(endpoint_of(backend, info))
            return

    async for change in changes:
        for backend in change.left:
            gone.add(backend)
            pool.leave(backend)
        for backend in change.came:
            pool.watch(take_in(backend))
