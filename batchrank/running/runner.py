"""Runs a job: reads, ranks, checkpoints, judges and writes; stops cleanly and resumes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from batchrank.clock import SystemClock
from batchrank.errors import (
    BatchrankError,
    DeadlineError,
    RejectedError,
)
from batchrank.formats.encoders.formats import make_encoder, output_format
from batchrank.formats.sources.source import Source, check_readable
from batchrank.formats.wording import displayable
from batchrank.keys import short_hash
from batchrank.logs import about
from batchrank.ranking.asker import Asker, Manner
from batchrank.ranking.job import Job
from batchrank.ranking.reranker import Reranker, failed, settled
from batchrank.running.causes import TIMEOUT
from batchrank.running.gates import Canaries, is_hopeless, worse_canaries
from batchrank.running.inspection import as_document, inspected
from batchrank.running.intake import Intake, NewQuery, Order
from batchrank.running.night import hold_lock, night_before
from batchrank.running.progress import Progress
from batchrank.running.recorder import Recorder
from batchrank.running.results import NO_FILE
from batchrank.running.snapshot import Snapshot
from batchrank.running.stopping import Stopping
from batchrank.running.ticking import Ticking
from batchrank.running.timekeeper import Timekeeper
from batchrank.running.verdict import Report, conclude
from batchrank.selection.filtering import restored, without
from batchrank.serving.preflight import Profile
from batchrank.serving.session import Session
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.loading import load_templates
from batchrank.store.connection import is_there
from batchrank.store.history import show_instead
from batchrank.store.records import Run
from batchrank.store.store import Store
from batchrank.values import QueryStatus, RankedQuery

GRACE_SECONDS = 25.0
"""How long a clean stop waits for calls in flight; Kubernetes kills after 30, systemd after 90."""
_OPEN_QUERIES = 4096
"""Bounds memory if the store can't keep up; otherwise far fewer queries are open."""


@dataclass(frozen=True, slots=True)
class _Rerankers:
    """One that ranks in full, and one that drops the optional passes where the job allows it.

    `reduced_job` is the number of the job that the second one's rankings belong to.
    """

    full: Reranker
    reduced: Reranker | None = None
    reduced_job: int = 0


class Runner:
    """One run of one job over `source` into the file `output` (`-` for stdout, None for no file).

    `say` gets a sentence for each thing worth telling, `tick` a snapshot every second and one
    at the end. The run stops, resumable, before it makes more than `most_calls` calls for windows.
    """

    def __init__(
        self,
        spec: JobSpec,
        source: Source,
        output: str | None,
        *,
        fresh: bool,
        retry_fallbacks: bool = False,
        most_calls: int | None = None,
        say: Callable[[str], None],
        tick: Callable[[Snapshot], None],
    ) -> None:
        self._spec = spec
        self._selection = spec.selection
        self._source = source
        self._output = output
        self._fresh = fresh
        self._again = retry_fallbacks
        self._most_calls = most_calls
        self._say = say
        self._tick = tick
        self._stopping = Stopping()
        self._asker: Asker | None = None
        self._queries: set[asyncio.Task[None]] = set()
        self._recorder = Recorder(spec, source.path, output, self._queries)
        self._intake: Intake | None = None
        self._refusal: str | None = None
        self._canaries: Canaries | None = None

    @property
    def _progress(self) -> Progress:
        return self._recorder.progress

    @property
    def is_stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stopping.reason is not None

    @property
    def why_stopped(self) -> BatchrankError | None:
        """What ended the run early, None while nothing did."""
        return self._stopping.reason

    async def inspect(self, qid: str) -> list[dict[str, Any]]:
        """What is known of the queries with this qid that are ranked, while the run is on.

        Raises StoreError.
        """
        if self._recorder.run is None:
            return []
        run = await self._store.run(self._recorder.run)
        found = await inspected(self._store, run, await self._store.find_query(run.id, qid))
        return [as_document(one, run.settings, None) for one in found]

    def stop(self, reason: BatchrankError) -> None:
        """Send nothing more, wait for what is in flight, then end for `reason`."""
        if self._stopping.stop(reason):
            self._progress.state = "stopping"
            if self._asker is not None:
                self._asker.stop()
            asyncio.get_running_loop().call_later(GRACE_SECONDS, self.abort)

    def abort(self) -> None:
        """Drop what is in flight; what was committed is kept."""
        for query in self._queries:
            query.cancel()
        if self._asker is not None:
            self._asker.abort()

    async def run(self) -> Report:
        """Run to the end or until stopped.

        Raises BatchrankError for what ends a run without a result: an unreadable input, no usable
        server, a store that is in use or full.
        """
        spec = self._spec
        # What can't be used as given is said before a store is made or a model waited for.
        templates = await asyncio.to_thread(load_templates, spec)
        if self._output is not None:
            form = output_format(spec.output_format, self._output)
            await asyncio.to_thread(make_encoder, form, "")  # its package is there
        # A pipe can be read only once.
        if await asyncio.to_thread(lambda: self._source.is_seekable):
            await asyncio.to_thread(check_readable, self._source)
        await asyncio.to_thread(is_there, spec.store)
        if spec.gate_qrels is not None:
            self._canaries = await asyncio.to_thread(Canaries.read, spec.gate_qrels)
        self._time = Timekeeper(spec, SystemClock(), say=self._say, stop=self.stop)
        self._recorder.time = self._time
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._time)
            await self._set_end(None)
            await hold_lock(spec, self._stopping, self._say, stack)
            self._store = store = await Store.open(spec.store, create=True)
            stack.push_async_callback(store.close)
            ticking = Ticking(self._recorder, spec.store, tick=self._tick, stop=self.stop)
            await stack.enter_async_context(ticking)
            session = await stack.enter_async_context(
                Session(spec, templates, store, self._time.curfew, self._say)
            )
            profile = session.remembered
            if profile is None:
                if self._refusal is not None:
                    raise DeadlineError(self._refusal)
                profile = await self._stopping.unless(session.open(resuming=False))
            while True:
                job = Job(spec, templates, profile)
                resuming = await store.is_interrupted(job.key)
                deadline = await self._set_end(job)
                run = await store.begin_run(
                    job.key,
                    job.settings,
                    displayable(self._source.path),
                    displayable(self._output or NO_FILE),
                    fresh=self._fresh,
                    deadline=deadline,
                    shard=str(self._source.shard) if self._source.shard else None,
                )
                about(run=run.id, job=job.key.hex())
                self._recorder.run, self._recorder.model = run.id, profile.model
                order = self._order(job)
                self._intake = Intake(self._source, spec.limit, store, run, job, order)
                self._recorder.intake = self._intake
                other = await self._rank_all(session, job, run, self._intake, resuming=resuming)
                if other is None:
                    report = await self._finish(run, self._intake)
                    ticking.ended(report.exit_code, report.reasons)
                    return report
                self._say("the model server is not what it was last time: this is another job")
                await store.drop_run(run.id)
                profile = other

    async def _set_end(self, job: Job | None) -> float | None:
        """Begin to keep time; the deadline in seconds since the epoch, None where there is none."""
        last = None if job is None else await night_before(self._store, job.key, self._spec)
        end = self._time.set_end(last)
        if job is None and end.note is not None:
            self._say(f"warning: {end.note}")
        self._refusal = end.refusal
        self._recorder.deadline = end.at
        return end.deadline

    def _order(self, job: Job) -> Order:
        canaries = self._canaries
        reduced = replace(job, spec=job.spec.without_optional_passes())
        return Order(
            by_urgency=canaries is not None or self._time.pace.left is not None,
            canaries=canaries.hashes if canaries else frozenset(),
            reduced=reduced if job.spec.degrade else None,
            again=self._again,
        )

    async def _rank_all(
        self, session: Session, job: Job, run: Run, intake: Intake, *, resuming: bool
    ) -> Profile | None:
        """Rank every query of the input that has no ranking yet.

        Returns the server's profile where it turns out, before the first call, that it is not the
        one that `job` is about; None otherwise.
        """
        rerankers: _Rerankers | None = None
        room = asyncio.Semaphore(_OPEN_QUERIES)
        sequence = count()
        canaries = self._canaries
        in_time = True
        self._progress.state = "ranking"
        async with asyncio.TaskGroup() as group:
            try:
                async for new in self._new_queries(intake):
                    if canaries is not None and not new.canary:
                        await self._judge(run, canaries)
                        canaries = None
                    await self._stopping.unless(self._room(room))
                    if not self._time.pace.has_room:
                        in_time = False
                        break  # what is open may go on to its end, or until the time is up
                    if rerankers is None and self._settled(new) is None:
                        profile = await self._stopping.unless(session.open(resuming=resuming))
                        if replace(job, profile=profile).key != job.key:
                            return profile
                        rerankers = await self._make_rerankers(session, job, run, intake)
                    task = group.create_task(self._rank(run, new, rerankers, next(sequence)))
                    self._queries.add(task)
                    intake.left -= 1
                    task.add_done_callback(self._queries.discard)
                    task.add_done_callback(lambda _: room.release())
                    await asyncio.sleep(0)  # lets it say how many windows it brings
                else:
                    if self._asker is not None and not self._time.pace.misses(len(self._queries)):
                        self._asker.finish()
            except BatchrankError as error:
                self.stop(error)
        if self._asker is not None:
            await self._asker.drain()
        if not in_time:
            late = self._refusal or "the time that is left is not enough for another query"
            self._stopping.stop(DeadlineError(late))
        return None

    async def _judge(self, run: Run, canaries: Canaries) -> None:
        """Wait for the judged queries; RejectedError where they came out worse than before."""
        while self._queries:
            await self._stopping.unless(asyncio.wait(self._queries))
        if worse := await worse_canaries(self._store, run, canaries):
            self._progress.canaries_passed = False
            raise RejectedError(f"{worse.reason}; the rest was not ranked")
        self._progress.canaries_passed = True

    async def _new_queries(self, intake: Intake) -> AsyncIterator[NewQuery]:
        blocks = intake.blocks()
        while (block := await self._stopping.unless(anext(blocks, None))) is not None:
            for new in block:
                yield new

    async def _room(self, room: asyncio.Semaphore) -> None:
        """Wait until the windows of one more query are welcome."""
        await room.acquire()
        if self._asker is not None:
            await self._asker.hungry()

    async def _make_rerankers(
        self, session: Session, job: Job, run: Run, intake: Intake
    ) -> _Rerankers:
        profile = job.profile
        pool = session.make_pool(profile, SystemClock())
        manner = Manner(
            identity=profile.identity,
            ways=job.ways,
            re_ask=self._spec.re_ask,
        )
        asker = Asker(pool, self._store, run.id, manner, self._most_calls)
        self._asker = asker
        self._recorder.pool, self._progress.spent = pool, asker.spent
        depth, selection = self._spec.deepest, self._selection
        full = Reranker(job.strategy, job.merging, depth, job.cut, asker, selection)
        if (other := intake.reduced_job) is None:
            return _Rerankers(full)
        reduced = Reranker(other.strategy, other.merging, depth, other.cut, asker, selection)
        number, _ = await self._store.register_job(other.key, other.settings)
        return _Rerankers(full, reduced, number)

    async def _rank(
        self, run: Run, new: NewQuery, rerankers: _Rerankers | None, sequence: int
    ) -> None:
        started = self._time.pace.start()
        key, job = new.key, run.job
        about(qid=new.request.query.qid)
        try:
            if rerankers is None:
                known = self._settled(new)
                assert known is not None, "no query so far had anything to ask"
                ranked = known
            elif self._must_hurry(rerankers) and new.reduced_key is not None:
                assert rerankers.reduced is not None
                ranked = await self._in_time(new, rerankers.reduced, sequence)
                ranked = replace(ranked, reduced=True)
                key, job = new.reduced_key, rerankers.reduced_job
            else:
                ranked = await self._in_time(new, rerankers.full, sequence)
            retry = ranked.status is QueryStatus.FAILED or ranked.tally.error > 0
            await self._store.add_ranking(key, job, ranked, retry=retry)
            if key != new.key:
                await show_instead(self._store, run.id, short_hash(ranked.qid), new.key, key)
        except BatchrankError as error:
            self.stop(error)
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

    def _must_hurry(self, rerankers: _Rerankers) -> bool:
        """Whether a query that starts now should do without its optional passes."""
        if rerankers.reduced is None or self._intake is None:
            return False
        return self._time.pace.misses(self._intake.left + len(self._queries))

    def _count(self, ranked: RankedQuery, seconds: float) -> None:
        self._recorder.finished(ranked, seconds)
        tally = self._progress.tally
        if is_hopeless(tally, self._spec.max_fallback):
            self.stop(
                RejectedError(
                    f"{tally.bad} of the first {tally.windows} windows brought no usable ranking: "
                    "stopped, since the rest of the night would be no better"
                )
            )

    async def _finish(self, run: Run, intake: Intake) -> Report:
        """Judge the run, write its result, and record how it ended."""
        self._progress.state = "writing"
        report = await conclude(
            self._store,
            run,
            self._spec,
            self._output,
            stopped=self._stopping.reason,
            canaries=self._canaries,
            intake=intake,
            progress=self._progress,
        )
        self._recorder.update()
        kept = {**report.summary(), "trace": self._recorder.trace}
        await self._store.end_run(run.id, report.exit_code, kept)
        if self._stopping.is_failure:
            assert self._stopping.reason is not None
            raise self._stopping.reason
        return report
