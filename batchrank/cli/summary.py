"""The summary at the end of a run, as text."""

from __future__ import annotations

from collections.abc import Mapping

from batchrank.cli.talk import duration, printable
from batchrank.outlook import Outlook
from batchrank.store.store import Totals
from batchrank.values import QueryStatus
from batchrank.verdict import Report

_UNMOVED_WARNING = 0.5


def summary_lines(report: Report) -> list[str]:
    """What a user wants to know in the morning, the verdict last."""
    progress, spent = report.progress, report.progress.spent
    lines = totals_lines(report.totals)
    if progress.known:
        lines.append(f"  already finished before this run: {progress.known} queries, no call")
    if (changes := report.changes) and (changes.changed or changes.gone):
        lines.append(
            f"  the input since the last run: {changes.changed:,} changed or new lines, "
            f"{changes.gone:,} no longer there"
        )
    if report.incremental:
        lines.append(f"  built on an earlier ranking: {report.incremental:,} queries")
    if report.reduced:
        lines.append(f"  ranked without optional passes, for lack of time: {report.reduced:,}")
    lines.append(
        f"  spent: {spent.calls:,} calls, {spent.usage.prompt_tokens:,} prompt + "
        f"{spent.usage.completion_tokens:,} generated tokens, {duration(progress.seconds)}"
    )
    if spent.saved or spent.retries:
        lines.append(f"  saved by the store: {spent.saved:,} calls; retries: {spent.retries:,}")
    tally = report.totals.tally
    answered = tally.ok + tally.repaired
    if answered and tally.unmoved > _UNMOVED_WARNING * answered:
        lines.append(
            f"  warning: {tally.unmoved} of {answered} answers only repeat the order of the prompt "
            f"({tally.unmoved / answered:.0%}): the model may not rank at all"
        )
    lines += [f"  warning: {warning}" for warning in report.warnings]
    if report.left_out:
        lines.append(f"  left out of the output: {len(report.left_out)} rows")
        lines += [f"    {reason}" for reason in report.left_out[:3]]
    if report.exit_code == 3:
        lines += [f"  rejected: {printable(reason)}" for reason in report.reasons]
        lines += [f"    for example {printable(example)}" for example in report.examples]
        if report.output is not None:
            lines.append(f"  the result is kept aside in {report.output}")
    elif report.exit_code == 75:
        lines += [f"  stopped: {printable(reason)}" for reason in report.reasons]
        if (done := report.coverage) and done.lines:
            lines.append(
                f"  ranked so far: {done.done:,} of {done.lines:,} queries that were read"
                + (f", {done.weight_done / done.weight:.0%} of the weight" if done.weight else "")
            )
        lines.append("  nothing is lost: the same command goes on where this one stopped")
    elif report.output not in (None, "-"):
        lines.append(f"  written to {report.output}")
    return lines


def outlook_lines(outlook: Outlook) -> list[str]:
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


def totals_lines(totals: Totals) -> list[str]:
    """Queries by status and windows by how they ended."""
    queries = sum(totals.queries.values())
    tally = totals.tally
    lines = [f"{queries:,} queries: {_counts(totals.queries) or 'none'}"]
    if tally.windows:
        lines.append(
            f"  {tally.windows:,} windows: {tally.ok:,} ok, {tally.repaired:,} repaired, "
            f"{tally.fallback:,} fallback, {tally.error:,} error; "
            f"{tally.unmoved:,} in the prompt's order, {tally.thin:,} named less than half"
        )
    return lines


def _counts(queries: Mapping[QueryStatus, int]) -> str:
    return ", ".join(f"{queries[status]:,} {status}" for status in QueryStatus if status in queries)
