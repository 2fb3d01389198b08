"""The queries of a run that are open: begun as there is room, ranked, committed, counted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from itertools import count
from typing import Any

from batchrank.errors import BatchrankError, DeadlineError, RejectedError
from batchrank.keys import short_hash
from batchrank.logs import about
from batchrank.ranking.reranker import Reranker, failed, settled
from batchrank.results.causes import TIMEOUT
from batchrank.running.gates import Canaries, is_hopeless, worse_canaries
from batchrank.running.intake import NewQuery
from batchrank.running.ongoing import Ongoing
from batchrank.running.rerankers import Rerankers, make_rerankers
from batchrank.selection.filtering import restored, without
from batchrank.serving.preflight import Profile
from batchrank.serving.session import Session
from batchrank.store.queries import show_instead
from batchrank.values import QueryStatus, RankedQuery

_MOST_OPEN = 4096
"""Bounds memory if the store can't keep up; otherwise far fewer queries are open."""


class OpenQueries:
    """Ranks every query of the input that has no ranking yet.

    `stop` is called with what ends the run early. With `most_calls` the run stops before it makes
    more calls for windows than that.
    """

    def __init__(
        self,
        ongoing: Ongoing,
        session: Session,
        *,
        stop: Callable[[BatchrankError], None],
        most_calls: int | None,
    ) -> None:
        self._ongoing = ongoing
        self._spec = ongoing.job.spec
        self._intake = ongoing.intake
        self._time = ongoing.time
        self._stopping = ongoing.stopping
        self._progress = ongoing.recorder.progress
        self._session = session
        self._stop = stop
        self._most_calls = most_calls
        self._selection = self._spec.selection
        self._tasks: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(_MOST_OPEN)
        self._rerankers: Rerankers | None = None
        """None until a query has anything to ask: finished work needs no server."""
        ongoing.recorder.open = self._tasks

    def stop(self) -> None:
        """Send nothing more; what is in flight goes on."""
        if self._rerankers is not None:
            self._rerankers.asker.stop()

    def abort(self) -> None:
        """Drop what is in flight; what was committed is kept."""
        for task in self._tasks:
            task.cancel()
        if self._rerankers is not None:
            self._rerankers.asker.abort()

    async def rank_all(self, *, resuming: bool) -> Profile | None:
        """Begin queries until there are no more, and wait for all that are open.

        Returns the server's profile where it turns out, before the first call, that it is not the
        one that the job is about; None otherwise.
        """
        sequence = count()
        canaries = self._ongoing.canaries
        in_time = True
        self._progress.state = "ranking"
        async with asyncio.TaskGroup() as group:
            try:
                async for new in self._new_queries():
                    if canaries is not None and not new.canary:
                        await self._judge(canaries)
                        canaries = None
                    await self._stopping.unless(self._welcome())
                    if not self._time.pace.has_room:
                        in_time = False
                        break  # what is open may go on to its end, or until the time is up
                    if self._rerankers is None and self._settled(new) is None:
                        other = await self._open_session(resuming=resuming)
                        if other is not None:
                            return other
                    self._begin(group, self._rank(new, next(sequence)))
                    await asyncio.sleep(0)  # lets it say how many windows it brings
                else:
                    rerankers = self._rerankers
                    if rerankers is not None and not self._time.pace.misses(len(self._tasks)):
                        rerankers.asker.finish()
            except BatchrankError as error:
                self._stop(error)
            finally:
                self._intake.close()
        if self._rerankers is not None:
            await self._rerankers.asker.drain()
        if not in_time:
            late = self._time.end.refusal
            late = late or "the time that is left is not enough for another query"
            self._stopping.stop(DeadlineError(late))
        return None

    async def _new_queries(self) -> AsyncIterator[NewQuery]:
        blocks = self._intake.blocks()
        while (block := await self._stopping.unless(anext(blocks, None))) is not None:
            for new in block:
                yield new

    async def _judge(self, canaries: Canaries) -> None:
        """Wait for the judged queries; RejectedError where they came out worse than before."""
        while self._tasks:
            await self._stopping.unless(asyncio.wait(self._tasks))
        if worse := await worse_canaries(self._ongoing.store, self._ongoing.run, canaries):
            self._progress.canaries_passed = False
            raise RejectedError(f"{worse.reason}; the rest was not ranked")
        self._progress.canaries_passed = True

    async def _welcome(self) -> None:
        """Wait until the windows of one more query are welcome."""
        await self._room.acquire()
        if self._rerankers is not None:
            await self._rerankers.asker.hungry()

    async def _open_session(self, *, resuming: bool) -> Profile | None:
        """Make what ranks; the server's profile instead where it is not that of the job."""
        ongoing, job = self._ongoing, self._ongoing.job
        profile = await self._stopping.unless(self._session.open(resuming=resuming))
        if replace(job, profile=profile).key != job.key:
            return profile
        self._rerankers = await make_rerankers(
            self._session,
            ongoing.store,
            ongoing.run,
            job,
            self._intake.reduced_job,
            self._most_calls,
        )
        ongoing.recorder.pool = self._rerankers.pool
        self._progress.spent = self._rerankers.asker.spent
        if (reason := self._stopping.reason) is not None:
            raise reason  # given while the asker was made, which so was not told to stop
        return None

    def _begin(self, group: asyncio.TaskGroup, work: Coroutine[Any, Any, None]) -> None:
        task = group.create_task(work)
        self._tasks.add(task)
        self._intake.left -= 1
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: self._room.release())

    async def _rank(self, new: NewQuery, sequence: int) -> None:
        """Rank a query, commit its ranking and count it."""
        started = self._time.pace.start()
        store, run, rerankers = self._ongoing.store, self._ongoing.run, self._rerankers
        key, job = new.key, run.job
        about(qid=new.request.query.qid)
        try:
            if rerankers is None:
                known = self._settled(new)
                assert known is not None, "no query so far had anything to ask"
                ranked = known
            elif (
                rerankers.reduced is not None
                and new.reduced_key is not None
                and self._time.pace.misses(self._intake.left + len(self._tasks))
            ):
                ranked = await self._in_time(new, rerankers.reduced, sequence)
                ranked = replace(ranked, reduced=True)
                key, job = new.reduced_key, rerankers.reduced_job
            else:
                ranked = await self._in_time(new, rerankers.full, sequence)
            retry = ranked.status is QueryStatus.FAILED or ranked.tally.error > 0
            await store.add_ranking(key, job, ranked, retry=retry, odd=new.odd)
            if key != new.key:
                await show_instead(store, run.id, short_hash(ranked.qid), new.key, key)
        except BatchrankError as error:
            self._stop(error)
        else:
            self._count(ranked, self._time.pace.finish(started))

    async def _in_time(self, new: NewQuery, reranker: Reranker, sequence: int) -> RankedQuery:
        """Rank a query, or give it up: what was answered is kept, what is in flight dropped."""
        seconds = self._spec.query_timeout
        try:
            async with self._time.at_most(seconds) as begin:
                return await reranker.rank(new.request, sequence, new.lineage, begin)
        except TimeoutError:
            late = (
                f"not ranked within {seconds:g} s of its first call (--query-timeout); the next "
                "run goes on with it"
            )
            removed = self._selection.removed(new.request.candidates)
            left = without(new.request, removed)
            return restored(failed(left, TIMEOUT, late), new.request, removed)

    def _settled(self, new: NewQuery) -> RankedQuery | None:
        return settled(new.request, self._spec.deepest, new.lineage, self._selection)

    def _count(self, ranked: RankedQuery, seconds: float) -> None:
        self._ongoing.recorder.finished(ranked, seconds)
        tally = self._progress.tally
        if is_hopeless(tally, self._spec.max_fallback):
            self._stop(
                RejectedError(
                    f"{tally.bad} of the first {tally.windows} windows brought no usable ranking: "
                    "stopped, since the rest of the night would be no better"
                )
            )
