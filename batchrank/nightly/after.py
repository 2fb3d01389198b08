"""What comes after a run, as its job spec says: its rankings are published, it is reported."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from batchrank.clock import Clock, SystemClock
from batchrank.errors import BatchrankError, LostServerError, RejectedError, StoppedError
from batchrank.formats.wording import counted, displayable, duration
from batchrank.progress.counts import Progress
from batchrank.progress.snapshot import STEPS, Step
from batchrank.publishing.making import publication_of
from batchrank.publishing.publication import Publication, Published
from batchrank.reporting import Wanted, write_report
from batchrank.running.report import Report
from batchrank.running.stopping import Stopping
from batchrank.serving.backoff import delay_of
from batchrank.spec.complaints import as_keys
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.publishspec import PublishSpec
from batchrank.store.store import Store

FAILED = "failed: "
"""How a step is remembered that is to be done again begins so."""
NOT_BEGUN = "not begun: "
"""How one is that a stop came before."""
UNDONE = (FAILED, NOT_BEGUN)
_NOT_DONE = "not done, since "
"""How one is that a run gave no cause for."""
PATIENCE_SECONDS = 300.0
"""How long a target that is not there is waited for: a server that restarts costs no night."""


@dataclass(frozen=True, slots=True)
class Night:
    """How a run ended, the steps after it that were done or failed, and why others were not due.

    `fault` is what is wrong with the program where a step broke: to be raised once all is told.
    """

    report: Report
    steps: tuple[Step, ...] = ()
    not_done: Mapping[str, str] = field(default_factory=dict)
    fault: Exception | None = None

    @property
    def exit_code(self) -> int:
        """That of the first step that failed, else that of the run."""
        failed = [step.exit_code for step in self.steps if step.exit_code]
        return failed[0] if failed else self.report.exit_code

    @property
    def reasons(self) -> tuple[str, ...]:
        """A sentence for each step that failed, else those of the run."""
        failed = tuple(f"{step.name}: {step.told}" for step in self.steps if step.exit_code)
        return failed or tuple(self.report.reasons)

    @property
    def told(self) -> dict[str, str]:
        """What each step did, or why it failed or was not done, by its name."""
        return {**self.not_done, **{step.name: step.told for step in self.steps}}


def steps_of(spec: JobSpec) -> tuple[str, ...]:
    """The steps that a night of `spec` has after its run, by the key that asks for each.

    After a shard there is none: they are for the whole.
    """
    if spec.shard is not None:
        return ()
    wanted = {"publish": spec.publish, "report": spec.report}
    return tuple(name for name, asked in wanted.items() if asked is not None)


def _why_not(report: Report) -> str:
    """Why what a run ranked is not to be published."""
    if report.exit_code == RejectedError.exit_code:
        return "the run was rejected"
    if report.exit_code == LostServerError.exit_code:
        return "the run lost its model server"
    return "the run was stopped early"


class AfterTheRun:
    """The steps of `spec` after a run whose store is held.

    Nothing is published that no gate passed; the report tells of every run. Each step is kept in
    the store with how it ended, and an error stops none, not even a fault of the program: a night
    whose publication broke has its report. `progress` tells what they are at, `say`
    gets a sentence where they wait.
    """

    def __init__(
        self,
        spec: JobSpec,
        report: Report,
        progress: Progress,
        say: Callable[[str], None],
        clock: Clock | None = None,
    ) -> None:
        self._spec = spec
        self._report = report
        self._progress = progress
        self._say = say
        self._clock = clock or SystemClock()
        self._stopping = Stopping()
        self._publication: Publication | None = None
        self._task: asyncio.Task[str] | None = None
        self._fault: Exception | None = None

    @property
    def is_stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stopping.reason is not None

    @property
    def awaited(self) -> str | None:
        """What `stop` waits for: a page is written to its end."""
        if self._publication is not None:
            return self._publication.awaited
        return "the step that is on is"

    def stop(self, reason: BatchrankError) -> None:
        """End the step that is on as soon as it can go on later, and begin no other."""
        self._stopping.stop(reason)
        if self._publication is not None:
            self._publication.stop(reason)

    def abort(self) -> None:
        """End it now; as if the process were killed."""
        if self._task is not None:
            self._task.cancel()

    async def run(self) -> Night:
        """Do the steps; the same again goes on with what was interrupted."""
        spec, report, due = self._spec, self._report, steps_of(self._spec)
        not_done: dict[str, str] = {}
        if spec.publish is not None and "publish" in due:
            if report.publishable:
                await self._step("publish", partial(self._published, spec.publish))
            else:
                not_done["publish"] = told = f"{_NOT_DONE}{_why_not(report)}"
                await self._keep(lambda store: store.end_step(report.run.id, "publish", told))
        if spec.report is not None and "report" in due:
            await self._step("report", partial(self._reported, spec.report))
        night = Night(report, tuple(self._progress.steps), not_done, self._fault)
        if due:
            await self._keep(lambda store: store.end_night(report.run.id, night.exit_code))
        return night

    async def _step(self, name: str, work: Callable[[], Coroutine[Any, Any, str]]) -> None:
        self._progress.state, self._progress.step = STEPS[name], ""
        exit_code = 0
        try:
            if (stopped := self._stopping.reason) is not None:
                exit_code, told = stopped.exit_code, f"{NOT_BEGUN}{stopped}"
            else:
                self._task = asyncio.create_task(work())
                told = await self._task
        except BatchrankError as error:
            exit_code, told = (
                error.exit_code,
                FAILED + as_keys(str(error), PublishSpec.model_fields),
            )
            if exit_code == StoppedError.exit_code and not self.is_stopping:
                # To a scheduler 75 may mean that the time was up, and all is well: it was not.
                exit_code = BatchrankError.exit_code
        except asyncio.CancelledError:
            if (reason := self._stopping.reason) is None:
                raise
            exit_code, told = reason.exit_code, f"{FAILED}{reason}"
        except Exception as error:
            self._fault = self._fault or error
            exit_code, told = BatchrankError.exit_code, f"{FAILED}{type(error).__name__}: {error}"
        await self._end_step(name, exit_code, told)

    async def _end_step(self, name: str, exit_code: int, told: str) -> None:
        self._progress.steps.append(Step(name, exit_code, told, self._clock.wall()))
        await self._keep(lambda store: store.end_step(self._report.run.id, name, told))

    async def _keep(self, what: Callable[[Store], Awaitable[None]]) -> None:
        """Put it in the store; a store that takes no more is not worth what was done."""
        with suppress(BatchrankError):
            async with await Store.open(self._spec.store) as store:
                await what(store)

    async def _published(self, wanted: PublishSpec) -> str:
        making = publication_of(self._spec.store, self._report.run.id, wanted, self._tick)
        async with making as publication:
            self._publication = publication
            ended = await self._patiently(publication)
            name = publication.target.name
        self._publication = None
        if ended.repeated:
            return f"generation {ended.generation} of {name} was current already"
        return (
            f"generation {ended.generation} of {name}: "
            f"{counted(ended.entries or 0, 'entry', 'entries')}, {ended.written:,} from this run, "
            f"{ended.carried:,} carried over"
        )

    async def _patiently(self, publication: Publication) -> Published:
        """Publish, and go on where the target was gone for a while."""
        attempt, waited, random = 0, 0.0, Random()  # noqa: S311 - no secret
        while True:
            try:
                return await publication.run()
            except BatchrankError as error:
                if not error.retryable or waited >= PATIENCE_SECONDS:
                    raise
                if not attempt:
                    patience = duration(PATIENCE_SECONDS)
                    self._say(f"warning: publish: {error}; it is waited for, at most {patience}")
            attempt += 1
            pause = delay_of(attempt, None, random)
            self._progress.step = f"waits for {publication.target.name}"
            await self._stopping.unless(self._clock.sleep(pause))
            waited += pause

    def _tick(self, share: float, what: str) -> None:
        self._progress.step = f"{what}: {share:.0%}"

    async def _reported(self, page: str) -> str:
        spec = self._spec
        wanted = Wanted(spec.store, self._report.run.id, spec.gate_qrels, cost=spec.cost)
        return f"{displayable(page)}, {await write_report(wanted, page):,} bytes"
