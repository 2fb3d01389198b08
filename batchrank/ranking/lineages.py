"""Looks up what the queries of a block can build on, where their job is incremental."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from batchrank.keys import short_hash
from batchrank.ranking.incremental import Earlier, Limits, lineage_of
from batchrank.ranking.job import Job
from batchrank.selection.filtering import without
from batchrank.spec.times import parse_duration
from batchrank.store.history import latest_rankings
from batchrank.store.records import Run
from batchrank.store.store import Store
from batchrank.values import Lineage, Request


async def find_lineages(
    store: Store, run: Run, job: Job, requests: Sequence[Request]
) -> list[Lineage | None]:
    """One for each request, in order; none in a job that always ranks in full."""
    spec = job.spec
    if not spec.incremental:
        return [None] * len(requests)
    found = await latest_rankings(store, run, {short_hash(one.query.qid) for one in requests})
    limits = Limits(
        change=spec.incremental_max_change,
        age=parse_duration(spec.incremental_max_age),
        one_call=None if spec.takes_one_call else job.profile.window_size,
    )

    selection = spec.selection

    def lineage(request: Request) -> Lineage:
        earlier = found.get(short_hash(request.query.qid))
        known = Earlier(*earlier) if earlier else None
        left = without(request, selection.removed(request.candidates))
        return lineage_of(left, spec.deepest, known, limits, run.started)

    return await asyncio.to_thread(lambda: [lineage(request) for request in requests])
