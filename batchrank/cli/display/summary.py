"""The summary at the end of a run, as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batchrank.cli.display.runs import done_of
from batchrank.formats.wording import counted, duration, printable
from batchrank.planning.outlook import Outlook
from batchrank.running.night import End
from batchrank.running.report import Report
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.walltime import told
from batchrank.store.queries import Coverage
from batchrank.store.records import Totals
from batchrank.values import QueryStatus

_SHOWN = 3


def summary_lines(report: Report) -> list[str]:
    """What a user wants to know in the morning, the verdict last."""
    progress, spent = report.progress, report.progress.spent
    lines = totals_lines(report.totals)
    if progress.known:
        lines.append(
            f"  already finished before this run: "
            f"{counted(progress.known, 'query', 'queries')}, no call"
        )
    if (changes := report.changes) and (changes.changed or changes.gone):
        name = f" ({printable(changes.input)})" if changes.input != report.run.input else ""
        lines.append(
            f"  the input since run {changes.run}{name}: {changes.changed:,} changed or new lines, "
            f"{changes.gone:,} no longer there"
        )
    lines += way_lines(report.summary())
    lines.append(
        f"  spent: {counted(spent.calls, 'call')}, {spent.usage.prompt_tokens:,} prompt + "
        f"{spent.usage.completion_tokens:,} generated tokens, {duration(progress.seconds)}"
        + (f", {duration(quiet)} of it quiet hours" if (quiet := progress.quiet_seconds) else "")
        + (f", {duration(held)} held back" if (held := progress.held_back_seconds) else "")
    )
    if spent.saved or spent.retries:
        lines.append(
            f"  saved by the store: {counted(spent.saved, 'call')}; retries: {spent.retries:,}"
        )
    lines.append(f"  store: {report.store}")
    lines += [f"  warning: {warning}" for warning in report.warnings]
    lines += _cause_lines(report)
    if report.left_out:
        lines.append(f"  left out of the output: {counted(len(report.left_out), 'row')}")
        lines += [f"    {reason}" for reason in report.left_out[:_SHOWN]]
    if report.exit_code == 3:
        return lines + _rejected_lines(report)
    if report.exit_code in (4, 75):
        return lines + _stopped_lines(report)
    if report.output not in (None, "-"):
        lines.append(f"  written to {report.output}")
    return lines


def _rejected_lines(report: Report) -> list[str]:
    lines = [f"  rejected: {printable(reason)}" for reason in report.reasons]
    lines += [f"    for example {printable(example)}" for example in report.examples]
    if report.output is not None:
        return [*lines, f"  the result is kept aside in {report.output}"]
    return [*lines, "  nothing is written; see `batchrank inspect QID` or `batchrank export`"]


def _stopped_lines(report: Report) -> list[str]:
    lines = [f"  stopped: {printable(reason)}" for reason in report.reasons]
    if (coverage := report.coverage) and coverage.lines:
        least = "" if coverage.is_read else "at least "
        done = f"{coverage.done:,} of {least}{counted(coverage.lines, 'query', 'queries')}"
        if failed := report.totals.queries.get(QueryStatus.FAILED, 0):
            done += f" ({failed:,} failed)"
        if not coverage.is_read:
            done += ", the input was not read to its end"
        elif coverage.weight:
            done += f", {coverage.weight_done / coverage.weight:.0%} of the weight"
        lines.append(f"  done so far: {done}")
    goes_on = "  nothing is lost: the same command goes on where this one stopped"
    if report.model_changed:
        goes_on += " once the old model is back; with the new one alone it starts another job"
    return [*lines, goes_on]


def way_lines(summary: Mapping[str, Any]) -> list[str]:
    """How rankings came about, by a run's summary; servers where one of several may be to blame.

    A summary of joined parts, or of an older version, does not tell all of it.
    """
    lines = []
    if incremental := summary.get("incremental"):
        lines.append(f"  built on an earlier ranking: {incremental:,} queries")
    if reduced := summary.get("reduced"):
        lines.append(f"  ranked without optional passes, for lack of time: {reduced:,}")
    servers: Mapping[str, Mapping[str, int]] = summary.get("servers", {})
    if len(servers) > 1 and any(one["bad"] for one in servers.values()):
        told = (
            f"{printable(url)} {one['bad']:,} of {one['windows']:,}" for url, one in servers.items()
        )
        lines.append(f"  windows without a usable ranking by server: {', '.join(told)}")
    return lines


def _cause_lines(report: Report) -> list[str]:
    """Why lines failed, and what servers said in place of answers."""
    lines = [
        f"  failed, {cause.reason}: {cause.count:,}, for example {printable(cause.examples[0])}"
        for cause in report.failures[:_SHOWN]
    ]
    if any(cause.of_input for cause in report.failures) and report.run.input != "-":
        lines.append(f"    `batchrank check {printable(report.run.input)}` says all of a file")
    if silences := report.silences:
        said = "; ".join(printable(cause.reason) for cause in silences[:_SHOWN])
        count = counted(report.totals.tally.error, "window")
        lines.append(f"  {count} without an answer, for example: {said}")
    return lines


def night_lines(spec: JobSpec, end: End, outlook: Outlook | None, now: float) -> list[str]:
    """What a run that begins `now` would do by its end; nothing where there is nothing to keep."""
    lines = []
    if end.refusal is not None:
        return [f"a run would stop at once, with exit code 75 if work is left: {end.refusal}"]
    if end.note is not None:
        lines.append(end.note)
    if (hours := spec.hours_of_quiet) is not None:
        if (until := hours.until(now)) is not None:
            lines.append(f"quiet hours: a run would wait until {told(until, now)}")
        if outlook is not None and outlook.queries == 1 and outlook.done_at is not None:
            lines.append(f"with quiet hours it would be done at {told(outlook.done_at, now)}")
    return lines if outlook is None else lines + _outlook_lines(outlook)


def _outlook_lines(outlook: Outlook) -> list[str]:
    """What a night can hold, and what would make all of a job fit; nothing without a deadline."""
    if outlook.seconds_left is None:
        return []
    left = duration(outlook.seconds_left)
    if outlook.queries == 1:
        return [f"fits into the {left} that are left"]
    lines = [
        f"{left} are left: {outlook.queries:.0%} of the queries will be done, "
        f"{outlook.weight:.0%} of their weight"
    ]
    lines += [
        f"all would fit with {choice.flags}: about {duration(choice.hours * 3600)}"
        for choice in outlook.fitting
    ]
    return lines


def totals_lines(totals: Totals, coverage: Coverage | None = None) -> list[str]:
    """Queries by status, with what is left of them where that is told, and windows by their end."""
    queries = sum(totals.queries.values())
    tally = totals.tally
    told = counted(queries, "query", "queries")
    left = ""
    if coverage is not None and not coverage.is_complete:
        told = f"{done_of(coverage)} {'query' if coverage.lines == 1 else 'queries'}"
        left = (
            f"; {coverage.lines - coverage.done:,} left"
            if coverage.is_read
            else "; the input was not read to its end"
        )
    lines = [f"{told}: {_counts(totals.queries) or 'none'}{left}"]
    if tally.windows:
        lines.append(
            f"  {counted(tally.windows, 'window')}: {tally.ok:,} ok, {tally.repaired:,} repaired, "
            f"{tally.fallback:,} fallback, {tally.error:,} error; "
            f"{tally.unmoved:,} in the prompt's order, {tally.thin:,} named less than half"
        )
    return lines


def _counts(queries: Mapping[QueryStatus, int]) -> str:
    return ", ".join(f"{queries[status]:,} {status}" for status in QueryStatus if status in queries)
