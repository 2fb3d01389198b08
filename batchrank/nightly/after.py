"""What comes after a run, as its job spec says: its rankings are published, it is reported."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

from batchrank.errors import BatchrankError
from batchrank.formats.wording import counted, displayable
from batchrank.publishing.making import publication_of
from batchrank.publishing.publication import Publication
from batchrank.reporting import Wanted, write_report
from batchrank.running.verdict import Report
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.publishspec import PublishSpec
from batchrank.store.lock import store_lock
from batchrank.store.published import first_alike
from batchrank.store.store import Store

SAME_NIGHT_SECONDS = 18 * 3600.0
"""A night that began earlier is over, whether or not it came to its end: the next one begins."""
FAILED = "failed: "
"""How a step is remembered that is to be done again begins so."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step after a run: what it did in a word, or the error that ended it."""

    name: str
    told: str
    error: BatchrankError | None = None


def steps_of(spec: JobSpec) -> tuple[str, ...]:
    """The steps that a night of `spec` has after its run, by the key that asks for each.

    After a shard there is none: they are for the whole.
    """
    if spec.shard is not None:
        return ()
    wanted = {"publish": spec.publish, "report": spec.report}
    return tuple(name for name, asked in wanted.items() if asked is not None)


async def after_the_run(
    spec: JobSpec,
    report: Report,
    *,
    began: Callable[[Publication], None],
    tick: Callable[[float, str], None],
) -> list[Step]:
    """Do the steps of `spec`; each is kept in the store with how it ended, and an error stops none.

    Nothing is published that no gate passed; the report tells of every run. `began` gets the
    publication, so that it can be stopped, `tick` how far it is. The same again goes on with what
    was interrupted.
    """
    run, due = report.run.id, steps_of(spec)
    steps = []
    if spec.publish is not None and "publish" in due and report.publishable:
        publishing = _published(spec, spec.publish, run, began, tick)
        steps.append(await _step(spec, run, "publish", publishing))
    if spec.report is not None and "report" in due:
        steps.append(await _step(spec, run, "report", _reported(spec, spec.report, run)))
    return steps


async def _published(
    spec: JobSpec,
    wanted: PublishSpec,
    run: int,
    began: Callable[[Publication], None],
    tick: Callable[[float, str], None],
) -> str:
    async with AsyncExitStack() as stack:
        lock = store_lock(spec.store)
        await asyncio.to_thread(lock.__enter__)
        stack.push(lock)
        # The same night begun again has another number; what was published of it, or begun to be,
        # is that of its first run.
        number = await _first_of_the_night(spec, run)
        publication = await stack.enter_async_context(
            publication_of(spec.store, number, wanted, tick)
        )
        began(publication)
        ended = await publication.run()
        name = publication.target.name
    if ended.repeated:
        return f"generation {ended.generation} of {name} was current already"
    return (
        f"generation {ended.generation} of {name}: "
        f"{counted(ended.entries or 0, 'entry', 'entries')}, {ended.written:,} from this run, "
        f"{ended.carried:,} carried over"
    )


async def _first_of_the_night(spec: JobSpec, number: int) -> int:
    store = await Store.open(spec.store)
    try:
        run = await store.run(number)
        return await first_alike(store, run, run.started - SAME_NIGHT_SECONDS)
    finally:
        await store.close()


async def _reported(spec: JobSpec, page: str, run: int) -> str:
    wanted = Wanted(spec.store, run, spec.gate_qrels, cost=spec.cost)
    return f"{displayable(page)}, {await write_report(wanted, page):,} bytes"


async def _step(spec: JobSpec, run: int, name: str, work: Awaitable[str]) -> Step:
    try:
        step = Step(name, await work)
    except BatchrankError as error:
        step = Step(name, f"{FAILED}{error}", error)
    with suppress(BatchrankError):  # the step is done, or its own error is told
        store = await Store.open(spec.store)
        try:
            await store.end_step(run, name, step.told)
        finally:
            await store.close()
    return step
