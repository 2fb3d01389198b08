"""Runs a job: reads, ranks, checkpoints, judges and writes; stops cleanly and resumes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from itertools import count
from typing import TypeVar

from batchrank.asker import Asker, Manner
from batchrank.errors import BatchrankError, RejectedError, StoppedError
from batchrank.formats.lines import read_lines
from batchrank.gates import is_hopeless, rejections
from batchrank.intake import Intake, NewQuery
from batchrank.job import Job
from batchrank.jobspec import JobSpec
from batchrank.preflight import Profile
from batchrank.progress import Progress, write_status
from batchrank.prompts.template import load_template
from batchrank.reranker import Reranker, needs_ranking, unranked
from batchrank.results import rejected_name, write_results
from batchrank.session import Session
from batchrank.slots import Slots
from batchrank.store.lock import store_lock
from batchrank.store.store import Run, Store, Totals
from batchrank.values import QueryStatus, RankedQuery

GRACE_SECONDS = 25.0
"""How long a clean stop waits for calls in flight; Kubernetes kills after 30, systemd after 90."""
_UNTOLD_SLOTS = {"ollama": 4}
"""Calls in flight where the server doesn't say how many it works on; 16 for all others."""
_OPEN_QUERIES = 4096
"""Bounds memory if the store can't keep up; otherwise far fewer queries are open."""
_EXAMPLES = 3
_ORDERLY = (StoppedError, RejectedError)
"""Reasons to stop that are an outcome with a report, not a failure."""


@dataclass(frozen=True, slots=True)
class Report:
    """How a run ended: `exit_code` as in the command line's contract, `reasons` in sentences."""

    run: Run
    exit_code: int
    reasons: list[str]
    examples: list[str]
    totals: Totals
    progress: Progress
    warnings: list[str]
    output: str | None
    left_out: list[str]

    def summary(self) -> dict[str, object]:
        """What is kept of a run in the store, and printed with --json."""
        spent = self.progress.spent
        return {
            "run": self.run.id,
            "exit_code": self.exit_code,
            "reasons": self.reasons,
            "queries": {str(status): n for status, n in self.totals.queries.items()},
            "windows": asdict(self.totals.tally),
            "already_finished": self.progress.known,
            "calls": spent.calls,
            "calls_saved": spent.saved,
            "retries": spent.retries,
            "prompt_tokens": spent.usage.prompt_tokens,
            "completion_tokens": spent.usage.completion_tokens,
            "seconds": round(self.progress.seconds, 3),
            "output": self.output,
            "left_out": self.left_out,
            "warnings": self.warnings,
        }


T = TypeVar("T")


class Runner:
    """One run of one job over the input at `source` (`-` for stdin) into `output`.

    `say` gets a sentence for each thing worth telling, `tick` the progress every second.
    """

    def __init__(
        self,
        spec: JobSpec,
        source: str,
        output: str,
        *,
        fresh: bool,
        say: Callable[[str], None],
        tick: Callable[[Progress], None],
    ) -> None:
        self._spec = spec
        self._source = source
        self._output = output
        self._fresh = fresh
        self._say = say
        self._tick = tick
        self._progress = Progress()
        self._stopped: BatchrankError | None = None
        self._stopping = asyncio.Event()
        self._asker: Asker | None = None
        self._queries: set[asyncio.Task[None]] = set()
        self._bad_answers: list[int] = []
        self._slots: Slots | None = None
        self._intake: Intake | None = None

    @property
    def is_stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stopping.is_set()

    def stop(self, reason: BatchrankError) -> None:
        """Send nothing more, wait for what is in flight, then end for `reason`."""
        # The first reason tells why, and later ones follow from it; only a failure weighs more.
        if self._stopped is None or (
            isinstance(self._stopped, _ORDERLY) and not isinstance(reason, _ORDERLY)
        ):
            self._stopped = reason
        if not self._stopping.is_set():
            self._stopping.set()
            self._progress.state = "stopping"
            if self._asker is not None:
                self._asker.stop()
            asyncio.get_running_loop().call_later(GRACE_SECONDS, self.abort)

    def abort(self) -> None:
        """Drop what is in flight; what was committed is kept."""
        for query in self._queries:
            query.cancel()

    async def run(self) -> Report:
        """Run to the end or until stopped.

        Raises BatchrankError for what ends a run without a result: an unreadable input, no usable
        server, a store that is in use or full.
        """
        spec = self._spec
        # What can't be used as given is said before a store is made or a model waited for.
        template = await asyncio.to_thread(load_template, spec.template)
        if self._source != "-":
            await asyncio.to_thread(next, read_lines(self._source))
        async with AsyncExitStack() as stack:
            lock = store_lock(spec.store)
            await asyncio.to_thread(lock.__enter__)
            stack.push(lock)
            self._store = store = await Store.open(spec.store, create=True)
            stack.push_async_callback(store.close)
            ticker = asyncio.create_task(self._keep_ticking())
            stack.push_async_callback(_end, ticker)
            session = await stack.enter_async_context(Session(spec, template, store, self._say))
            profile = session.remembered
            if profile is None:
                profile = await self._unless_stopped(session.open(resuming=False))
            while True:
                job = Job(spec, template, profile)
                resuming = await store.is_interrupted(job.key)
                run = await store.begin_run(
                    job.key, job.settings, self._source, self._output, fresh=self._fresh
                )
                self._intake = intake = Intake(self._source, spec.limit, store, run, job.key)
                other = await self._rank_all(session, job, run, intake, resuming=resuming)
                if other is None:
                    return await self._finish(run, intake)
                self._say("the model server is not what it was last time: this is another job")
                profile = other

    async def _rank_all(
        self, session: Session, job: Job, run: Run, intake: Intake, *, resuming: bool
    ) -> Profile | None:
        """Rank every query of the input that has no ranking yet.

        Returns the server's profile where it turns out, before the first call, that it is not the
        one that `job` is about; None otherwise.
        """
        reranker: Reranker | None = None
        room = asyncio.Semaphore(_OPEN_QUERIES)
        sequence = count()
        self._progress.state = "ranking"
        async with asyncio.TaskGroup() as group:
            try:
                async for new in self._new_queries(intake):
                    if reranker is None and needs_ranking(new.request, job.spec.depth):
                        profile = await self._unless_stopped(session.open(resuming=resuming))
                        if Job(job.spec, job.template, profile).key != job.key:
                            return profile
                        reranker = self._make_reranker(session, job, run)
                    await self._unless_stopped(self._room(room))
                    task = group.create_task(self._rank(run, new, reranker, next(sequence)))
                    self._queries.add(task)
                    task.add_done_callback(self._queries.discard)
                    task.add_done_callback(lambda _: room.release())
                    await asyncio.sleep(0)  # lets it say how many windows it brings
            except BatchrankError as error:
                self.stop(error)
        return None

    async def _new_queries(self, intake: Intake) -> AsyncIterator[NewQuery]:
        blocks = intake.blocks()
        while (block := await self._unless_stopped(anext(blocks, None))) is not None:
            for new in block:
                yield new

    async def _room(self, room: asyncio.Semaphore) -> None:
        """Wait until the windows of one more query are welcome."""
        await room.acquire()
        if self._asker is not None:
            await self._asker.hungry()

    def _make_reranker(self, session: Session, job: Job, run: Run) -> Reranker:
        profile = job.profile
        slots = Slots(self._spec.concurrency or capacity_of(profile))
        manner = Manner(
            identity=profile.identity,
            ways=job.ways,
            timeout=self._spec.timeout,
            re_ask=self._spec.re_ask,
        )
        asker = Asker(session.connection.backend, slots, self._store, run.id, manner)
        self._slots = slots
        self._asker = asker
        self._progress.spent = asker.spent
        self._progress.capacity = slots.capacity
        return Reranker(job.strategy, self._spec.depth, job.cut, asker)

    async def _rank(
        self, run: Run, new: NewQuery, reranker: Reranker | None, sequence: int
    ) -> None:
        try:
            if reranker is None:  # no query so far had anything to ask
                ranked = unranked(new.request)
            else:
                ranked = await reranker.rank(new.request, sequence)
            retry = ranked.status is QueryStatus.FAILED or ranked.tally.error > 0
            await self._store.add_ranking(new.key, run.job, ranked, retry=retry)
        except BatchrankError as error:
            self.stop(error)
        else:
            self._count(ranked)

    def _count(self, ranked: RankedQuery) -> None:
        progress = self._progress
        progress.finished += 1
        progress.tally += ranked.tally
        if ranked.tally.bad and len(self._bad_answers) < _EXAMPLES:
            self._bad_answers += [number for number in ranked.answers if number][:1]
        if is_hopeless(progress.tally, self._spec.max_fallback):
            tally = progress.tally
            self.stop(
                RejectedError(
                    f"{tally.bad} of the first {tally.windows} windows brought no usable ranking: "
                    "stopped, since the rest of the night would be no better"
                )
            )

    async def _finish(self, run: Run, intake: Intake) -> Report:
        """Judge what is there, write it where it is good enough, and record how the run ended."""
        self._progress.state = "writing"
        totals = await self._store.totals(run.id)
        reasons: list[str] = []
        written: str | None = None
        left_out: list[str] = []
        if self._stopped is not None:
            code = self._stopped.exit_code
            reasons.append(str(self._stopped))
        else:
            reasons = rejections(totals, self._spec.max_fallback, self._spec.max_failed)
            code = RejectedError.exit_code if reasons else 0
            written = rejected_name(self._output) if reasons else self._output
            if written is not None:
                form = self._spec.format
                left_out = await write_results(self._store, run, written, form, self._spec.top_k)
        report = Report(
            run=run,
            exit_code=code,
            reasons=reasons,
            examples=await self._examples() if code == RejectedError.exit_code else [],
            totals=totals,
            progress=self._progress,
            warnings=[f"{n} queries: {text}" for text, n in intake.warnings.items()],
            output=written,
            left_out=left_out,
        )
        self._update_progress()
        await self._store.end_run(run.id, code, report.summary())
        if self._stopped is not None and not isinstance(self._stopped, _ORDERLY):
            raise self._stopped
        return report

    async def _examples(self) -> list[str]:
        answers = await self._store.answers(self._bad_answers[:_EXAMPLES])
        return [answer.text for answer in answers.values()]

    async def _unless_stopped(self, work: Awaitable[T]) -> T:
        """Await `work`, or raise the reason to stop as soon as there is one."""
        if self._stopped is not None:
            raise self._stopped
        task = asyncio.ensure_future(work)
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait((task, stopping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            if not task.done():
                task.cancel()
        if self._stopped is not None and not task.done():
            raise self._stopped
        return await task

    async def _keep_ticking(self) -> None:
        while True:
            self._update_progress()
            self._tick(self._progress)
            await asyncio.to_thread(write_status, self._spec.store, self._progress)
            await asyncio.sleep(1)

    def _update_progress(self) -> None:
        progress = self._progress
        progress.now = time.monotonic()
        if self._slots is not None:
            progress.in_flight = self._slots.in_flight
        if self._intake is not None:
            progress.lines = self._intake.lines
            progress.known = self._intake.known
            progress.open = len(self._queries)
            progress.share_read = self._intake.share_read


def capacity_of(profile: Profile) -> int:
    """Calls in flight: the slots the server has, and a few more so that none waits for us."""
    if profile.slots is None:
        return _UNTOLD_SLOTS.get(profile.kind, 16)
    return profile.slots + max(1, profile.slots // 4)


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
