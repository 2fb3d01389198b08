"""Which lines of an input a store has ranked already, before a run begins."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from batchrank.keys import generation, ranking_key
from batchrank.ranking.job import Job
from batchrank.store.history import fresh_since
from batchrank.store.store import Store


@dataclass(frozen=True, slots=True)
class KnownLines:
    """The rankings of one job; `reduced` stands for those without its optional passes."""

    store: Store
    key: bytes
    reduced: bytes | None
    again: bool = False

    async def among(self, digests: Sequence[bytes]) -> list[bool]:
        """For each line, by its digest, whether the next run of the job takes its ranking over."""
        keys = [key for key in (self.key, self.reduced) if key is not None]
        of_lines = [[ranking_key(key, digest) for key in keys] for digest in digests]
        found = await self.store.known(key for line in of_lines for key in line)
        done = {
            key for key, one in found.items() if not (one.retry or (self.again and one.fell_back))
        }
        return [not done.isdisjoint(line) for line in of_lines]


@asynccontextmanager
async def known_lines(job: Job, *, again: bool = False) -> AsyncIterator[KnownLines | None]:
    """What the job's store holds for it; None where there is no store.

    `again`: rankings with a window that fell back don't count. Raises StoreError.
    """
    if not await asyncio.to_thread(job.spec.store.is_file):
        yield None
        return
    async with await Store.open(job.spec.store) as store:
        key = await _key(store, job)
        reduced = None
        if job.spec.degrade:
            reduced = await _key(store, replace(job, spec=job.spec.without_optional_passes()))
        yield KnownLines(store, key, reduced, again)


async def _key(store: Store, job: Job) -> bytes:
    return generation(job.key, await fresh_since(store, job.key))
