"""Runs a job: reads, ranks, checkpoints, judges and writes; stops cleanly and resumes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

from batchrank.clock import SystemClock
from batchrank.errors import BatchrankError, DeadlineError, NoServerError
from batchrank.formats.encoders.formats import make_encoder, output_format
from batchrank.formats.sources.source import Source, check_readable
from batchrank.formats.wording import displayable
from batchrank.logs import about
from batchrank.progress.counts import Progress
from batchrank.progress.snapshot import Snapshot
from batchrank.ranking.job import Job
from batchrank.results.filenames import NO_FILE
from batchrank.results.inspection import as_document, inspected
from batchrank.running.gates import Canaries
from batchrank.running.intake import Intake, Order
from batchrank.running.lastjob import profile_of_last, told_of_other
from batchrank.running.night import hold_lock, night_before
from batchrank.running.ongoing import Ongoing
from batchrank.running.openqueries import OpenQueries
from batchrank.running.recorder import Recorder
from batchrank.running.report import Report
from batchrank.running.stopping import Stopping
from batchrank.running.ticking import Ticking
from batchrank.running.timekeeper import Timekeeper
from batchrank.running.verdict import conclude
from batchrank.serving.session import Session
from batchrank.spec.dates import names_of
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.loading import Templates, load_templates
from batchrank.store.connection import is_there
from batchrank.store.queries import find_query
from batchrank.store.store import Store

GRACE_SECONDS = 25.0
"""How long a clean stop waits for calls in flight; Kubernetes kills after 30, systemd after 90."""


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
        self._source = source
        self._output = output
        self._fresh = fresh
        self._again = retry_fallbacks
        self._most_calls = most_calls
        self._say = say
        self._tick = tick
        self._stopping = Stopping()
        self._recorder = Recorder(spec, source.path, output)
        self._open: OpenQueries | None = None
        self._canaries: Canaries | None = None

    @property
    def progress(self) -> Progress:
        """How far it is; who does more in its night tells so here."""
        return self._recorder.progress

    @property
    def is_stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stopping.reason is not None

    @property
    def awaited(self) -> str | None:
        """What `stop` waits for, None while nothing can have been sent."""
        return None if self._open is None else "calls in flight are"

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
        found = await inspected(self._store, run, await find_query(self._store, run.id, qid))
        return [as_document(one, run.settings, None) for one in found]

    def stop(self, reason: BatchrankError) -> None:
        """Send nothing more, wait for what is in flight, then end for `reason`."""
        if self._stopping.stop(reason):
            self.progress.state = "stopping"
            if self._open is not None:
                self._open.stop()
            asyncio.get_running_loop().call_later(GRACE_SECONDS, self.abort)

    def abort(self) -> None:
        """Drop what is in flight; what was committed is kept."""
        if self._open is not None:
            self._open.abort()

    async def run(self) -> Report:
        """Run to the end or until stopped.

        Raises BatchrankError for what ends a run without a result: an unreadable input, no usable
        server, a store that is in use or full.
        """
        async with AsyncExitStack() as night:
            return await self.run_within(night, goes_on=False)

    async def run_within(self, night: AsyncExitStack, *, goes_on: bool) -> Report:
        """As `run`, but the store is held, and the run shown, until `night` is left.

        Where it `goes_on` after the run, `night_ended` is to be called.
        """
        spec = self._spec
        templates = await self._check()
        self._time = Timekeeper(spec, SystemClock(), say=self._say, stop=self.stop)
        self._recorder.time = self._time
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._time)
            await self._set_end(None)
            await hold_lock(spec, self._stopping, self._say, night)
            self._store = store = await Store.open(spec.store, create=True)
            night.push_async_callback(store.close)
            ticking = Ticking(self._recorder, spec.store, tick=self._tick, stop=self.stop)
            self._ticking = await night.enter_async_context(ticking)
            session = await stack.enter_async_context(
                Session(spec, templates, store, self._time.curfew, self._say)
            )
            self._recorder.session = session
            profile = session.remembered
            unnamed = None
            if profile is None:
                profile = unnamed = await profile_of_last(store, spec, templates)
            if profile is None:
                if (refusal := self._time.end.refusal) is not None:
                    raise DeadlineError(refusal)
                profile = await self._stopping.unless(session.open(resuming=False))
            while True:
                job = Job(spec, templates, profile)
                resuming = await store.is_interrupted(job.key)
                ongoing = await self._begin(job)
                self._open = OpenQueries(
                    ongoing, session, stop=self.stop, most_calls=self._most_calls
                )
                other = await self._open.rank_all(resuming=resuming)
                if other is None:
                    report = await self._finish(ongoing, goes_on=goes_on)
                    self.night_ended(report.exit_code, report.reasons)
                    return report
                if unnamed is not None:
                    await store.drop_run(ongoing.run.id)
                    raise NoServerError(
                        f"{spec.store} is about {unnamed.model}, and the server that was found "
                        f"serves {other.model}, or serves it otherwise: name one with "
                        f"{unnamed.model} by --base-url, or another store with --store"
                    )
                self._say("the model server is not what it was last time: this is another job")
                await store.drop_run(ongoing.run.id)
                profile = other

    async def _check(self) -> Templates:
        """Say what can't be used as given before a store is made or a model waited for."""
        spec = self._spec
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
        return templates

    async def _begin(self, job: Job) -> Ongoing:
        """Register a run of `job`."""
        store, recorder = self._store, self._recorder
        deadline = await self._set_end(job)
        if self._output is not None:
            other = await told_of_other(store, self._source.path, job)
            if other is not None:
                self._say(f"warning: {other}")
        run = await store.begin_run(
            job.key,
            job.settings,
            displayable(self._source.path),
            displayable(self._output or NO_FILE),
            fresh=self._fresh,
            deadline=deadline,
            shard=str(self._source.shard) if self._source.shard else None,
            names=names_of(self._spec),
        )
        about(run=run.id, job=job.key.hex())
        intake = Intake(self._source, self._spec.limit, store, run, job, self._order(job))
        recorder.run, recorder.model, recorder.intake = run.id, job.profile.model, intake
        return Ongoing(
            job, run, store, intake, self._time, self._stopping, recorder, self._canaries
        )

    def night_ended(self, exit_code: int, reasons: Sequence[str]) -> None:
        """Say how the run ended, with what came after it."""
        self._ticking.ended(exit_code, reasons)

    async def _set_end(self, job: Job | None) -> float | None:
        """Begin to keep time; the deadline in seconds since the epoch, None where there is none."""
        last = None if job is None else await night_before(self._store, job.key, self._spec)
        end = self._time.set_end(last)
        if job is None and end.note is not None:
            self._say(f"warning: {end.note}")
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

    async def _finish(self, ongoing: Ongoing, *, goes_on: bool) -> Report:
        """Judge the run, write its result, and record how it ended."""
        self.progress.state = "writing"
        report = await conclude(ongoing, self._output)
        self._recorder.update()
        # What comes after the run takes time that is not the run's.
        report = replace(report, progress=replace(self.progress))
        kept = {**report.summary(), "trace": self._recorder.trace}
        goes_on = goes_on and not self._stopping.is_failure
        await self._store.end_run(ongoing.run.id, report.exit_code, kept, goes_on=goes_on)
        if self._stopping.is_failure:
            assert self._stopping.reason is not None
            raise self._stopping.reason
        return report
