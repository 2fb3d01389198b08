"""Judges a run that has ended, and writes what is good enough."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from batchrank.errors import (
    BatchrankError,
    DeadlineError,
    ModelChangedError,
    RejectedError,
    StoppedError,
)
from batchrank.formats.encoders.formats import output_format
from batchrank.formats.wording import displayable
from batchrank.results.causes import chance_of_repeating, failures, silences
from batchrank.results.filenames import rejected_name, remove_rejected, state_of
from batchrank.results.writing import Written, write_results
from batchrank.running.gates import Canaries, bad_windows, rejections, worse_canaries
from batchrank.running.intake import Intake
from batchrank.running.ongoing import Ongoing
from batchrank.running.report import Report
from batchrank.store.history import Changes, changes, last_output, remember_output
from batchrank.store.queries import (
    count_of_incremental,
    count_of_other_jobs,
    coverage,
    known_oddities,
    queries_of,
)
from batchrank.store.records import Run, Totals
from batchrank.store.store import Store
from batchrank.values import QueryStatus, Tally

_ENOUGH_ANSWERS = 20
"""From so many on it is no accident that answers repeat the order of their prompts."""


async def conclude(ongoing: Ongoing, output: str | None) -> Report:
    """Judge what is there, and write it where it is good enough; nowhere where `output` is None.

    Raises DiskError, StoreError, and UsageError where a gate can't be applied.
    """
    reason = ongoing.stopping.reason
    report = await _told(ongoing)
    if reason is None:
        report = await _judge(ongoing, report)
    else:
        report = await _stopped(ongoing, report, reason)
        if not (isinstance(reason, RejectedError) and await _is_whole(ongoing)):
            return report
    written = rejected_name(output) if output and report.exit_code else output
    if written is None:
        return report
    left_out = await _write(ongoing, written, is_good=written == output)
    if written == output and await asyncio.to_thread(remove_rejected, output):
        gone = f"{displayable(output)}.rejected of an earlier run is removed: this one is accepted"
        report = replace(report, warnings=[*report.warnings, gone])
    return replace(report, output=displayable(written), left_out=left_out)


async def _told(ongoing: Ongoing) -> Report:
    """What there is to tell of a run, before it is judged."""
    store, run, intake = ongoing.store, ongoing.run, ongoing.intake
    counts = await _count(store, run, intake)
    totals = counts.totals
    warnings = [*intake.notes, *await _odd_lines(store, run, intake)]
    warnings += intake.unknown_keys.warnings()
    return Report(
        run=run,
        exit_code=0,
        reasons=[],
        examples=[],
        totals=totals,
        progress=ongoing.recorder.progress,
        warnings=[*warnings, *await _repeated_orders(store, run, totals.tally)],
        failures=await failures(store, run) if QueryStatus.FAILED in totals.queries else [],
        silences=await silences(store, run) if totals.tally.error else [],
        # The first run of a store makes it.
        store=displayable(str(store.path)) + (", created" if run.id == 1 else ""),
        output=None,
        left_out=[],
        changes=counts.changes,
        reduced=counts.reduced,
        incremental=counts.incremental,
    )


async def _odd_lines(store: Store, run: Run, intake: Intake) -> list[str]:
    """What is odd about queries of the input, those that are ranked already included."""
    repeated = intake.repeats.summary if intake.repeats is not None else None
    if repeated is None or repeated["warnings"]:
        for sentences, count, first in await known_oddities(store, run):
            intake.query_warnings.add_counted(sentences, count, first)
    return intake.query_warnings.lines()


async def _judge(ongoing: Ongoing, report: Report) -> Report:
    """What the gates say of a run that went to its end."""
    spec, canaries = ongoing.job.spec, ongoing.canaries
    found = await rejections(ongoing.store, ongoing.run, spec, report.totals, canaries)
    return replace(
        report,
        exit_code=RejectedError.exit_code if found else 0,
        publishable=not found,
        reasons=[rejection.reason for rejection in found],
        examples=[example for rejection in found for example in rejection.examples],
    )


async def _stopped(ongoing: Ongoing, report: Report, reason: BatchrankError) -> Report:
    """What became of a run that ended early."""
    store, run = ongoing.store, ongoing.run
    examples: tuple[str, ...] = ()
    if isinstance(reason, RejectedError):
        examples = await _why_rejected(store, run, ongoing.canaries)
    report = replace(
        report,
        exit_code=reason.exit_code,
        reasons=[str(reason)],
        examples=list(examples),
        coverage=replace(await coverage(store, run.id), is_read=ongoing.intake.is_read)
        if isinstance(reason, StoppedError)
        else None,
        model_changed=isinstance(reason, ModelChangedError),
    )
    return (
        await _judge_short_night(ongoing, report) if isinstance(reason, DeadlineError) else report
    )


async def _is_whole(ongoing: Ongoing) -> bool:
    """Whether every line of the input has its ranking."""
    done = await coverage(ongoing.store, ongoing.run.id)
    return ongoing.intake.is_read and done.done == done.lines


async def _judge_short_night(ongoing: Ongoing, report: Report) -> Report:
    """What the gates say of the queries that were done in time."""
    store, run, canaries = ongoing.store, ongoing.run, ongoing.canaries
    if canaries is not None and not await queries_of(store, run.id, canaries.hashes):
        canaries = None  # none was done yet
    found = await rejections(store, run, ongoing.job.spec, report.totals, canaries)
    return replace(
        report,
        publishable=not found,
        reasons=[*report.reasons, *(rejection.reason for rejection in found)],
        examples=[example for rejection in found for example in rejection.examples],
    )


async def _repeated_orders(store: Store, run: Run, tally: Tally) -> list[str]:
    """A warning where answers repeat the order of their prompts much more often than by chance."""
    answered = tally.ok + tally.repaired
    if answered < _ENOUGH_ANSWERS or tally.unmoved <= answered / 2:
        return []
    chance = await chance_of_repeating(store, run)
    share = tally.unmoved / answered
    if share <= (1 + chance) / 2:
        return []
    return [
        f"{tally.unmoved:,} of {answered:,} answers only repeat the order of the prompt "
        f"({share:.0%}, by chance {chance:.0%}): the model may not rank at all"
    ]


@dataclass(frozen=True, slots=True)
class _Counts:
    totals: Totals
    changes: Changes | None
    reduced: int
    incremental: int


async def _count(store: Store, run: Run, intake: Intake) -> _Counts:
    """What a run holds; of one that repeats the run before, as that one counted it."""
    if (earlier := intake.repeats) is not None and (known := earlier.summary) is not None:
        queries = {QueryStatus(status): count for status, count in known["queries"].items()}
        totals = Totals(queries, Tally(**known["windows"]))
        same = Changes(earlier.id, earlier.input, changed=0, gone=0)
        return _Counts(totals, same, known["reduced"], known["incremental"])
    return _Counts(
        totals=await store.totals(run.id),
        changes=await changes(store, run) if intake.is_read else None,
        reduced=await count_of_other_jobs(store, run),
        incremental=await count_of_incremental(store, run.id),
    )


async def _write(ongoing: Ongoing, path: str, *, is_good: bool) -> list[str]:
    """Write a run's rows, but where the run before has written the same and nobody touched it.

    What is good replaces a file only where there is something to write.
    """
    store, run, intake, spec = ongoing.store, ongoing.run, ongoing.intake, ongoing.job.spec
    form = output_format(spec.output_format, path)
    can_be_read_again = await asyncio.to_thread(lambda: intake.source.is_seekable)
    texts = intake.source if can_be_read_again else None

    def state() -> dict[str, object] | None:
        return state_of(path, form, spec.top_k)

    found = await asyncio.to_thread(state)
    earlier = intake.repeats.summary if intake.repeats is not None else None
    if earlier is not None and found is not None and found == await last_output(store, run):
        left_out: list[str] = earlier["left_out"]
    else:
        how = Written(form, spec.top_k, texts, may_be_empty=not is_good)
        left_out = await write_results(store, run, path, how)
        found = await asyncio.to_thread(state)
    if found is not None:
        await remember_output(store, run.id, found)
    return left_out


async def _why_rejected(store: Store, run: Run, canaries: Canaries | None) -> tuple[str, ...]:
    """Examples for a run that was stopped because going on was of no use."""
    if canaries is not None and (worse := await worse_canaries(store, run, canaries)):
        return worse.examples
    return await bad_windows(store, run)
