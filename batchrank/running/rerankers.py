"""What ranks the queries of a run: in full, and without the optional passes where time is short."""

from __future__ import annotations

from dataclasses import dataclass

from batchrank.clock import SystemClock
from batchrank.ranking.asker import Asker, Manner
from batchrank.ranking.job import Job
from batchrank.ranking.reranker import Reranker
from batchrank.serving.pool import Pool
from batchrank.serving.session import Session
from batchrank.store.records import Run
from batchrank.store.store import Store


@dataclass(frozen=True, slots=True)
class Rerankers:
    """One that ranks in full, and one that drops the optional passes where the job allows it.

    Both ask through `asker`, which sends to `pool`. `reduced_job` is the number of the job that the
    second one's rankings belong to.
    """

    pool: Pool
    asker: Asker
    full: Reranker
    reduced: Reranker | None = None
    reduced_job: int = 0


async def make_rerankers(
    session: Session, store: Store, run: Run, job: Job, reduced: Job | None, most_calls: int | None
) -> Rerankers:
    """Those of `job`, and of `reduced` where there is one, at the servers of an open session.

    With `most_calls` the window that would need one call more stops the run. Raises StoreError.
    """
    pool = session.make_pool(job.profile, SystemClock())
    manner = Manner(identity=job.profile.identity, ways=job.ways, re_ask=job.spec.re_ask)
    asker = Asker(pool, store, run.id, manner, most_calls)
    full = _reranker(job, asker)
    if reduced is None:
        return Rerankers(pool, asker, full)
    number, _ = await store.register_job(reduced.key, reduced.settings)
    return Rerankers(pool, asker, full, _reranker(reduced, asker), number)


def _reranker(job: Job, asker: Asker) -> Reranker:
    spec = job.spec
    return Reranker(job.strategy, job.merging, spec.deepest, job.cut, asker, spec.selection)
