"""A snapshot of a run as a board for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from batchrank.formats.wording import counted, duration, one_line
from batchrank.progress.snapshot import Finished, Snapshot
from batchrank.spec.walltime import local

_BARS = "▁▂▃▄▅▆▇█"
_TRACE = 60
_SHOWN = 8
_MOVES = 5
_STYLES = {
    **{"ok": "green", "well": "green", "repaired": "yellow", "resting": "yellow"},
    **{"degraded": "yellow", "failed": "red", "lost": "red"},
}


def board(snapshot: Snapshot) -> RenderableType:
    """Progress, throughput, windows, servers, gates, and the last queries."""
    parts: list[RenderableType] = [*_head(snapshot), Text(), _facts(snapshot)]
    if snapshot.endpoints:
        parts += [Text(), _servers(snapshot)]
    if snapshot.recent:
        parts += [Text(), _queries(snapshot.recent[:_SHOWN])]
    return Group(*parts)


def sparkline(values: Sequence[float]) -> str:
    """The last values as bars, the highest as high as a line is."""
    last = values[-_TRACE:]
    most = max(last, default=0.0)
    if most <= 0:
        return ""
    return "".join(_BARS[min(7, int(value / most * 8))] for value in last)


def _head(now: Snapshot) -> Iterator[RenderableType]:
    title = Text(one_line(now.input), style="bold")
    title.append(f"  {one_line(now.model or 'no model yet')} · run {now.run or '–'}", style="dim")
    yield title
    share = now.share_done
    grid = Table.grid(padding=(0, 2))
    bar = ProgressBar(total=1.0, completed=share or 0.0, width=40, pulse=share is None)
    grid.add_row(bar, Text("–" if share is None else f"{share:.1%}", style="bold"))
    yield grid
    said = [one_line(now.activity), now.told, f"{duration(now.seconds)} so far"]
    if now.seconds_left is not None:
        said.append(f"{duration(now.seconds_left)} left")
    if now.deadline is not None:
        until = local(now.deadline)
        by_then = now.share_by_deadline
        known = "" if by_then is None else f"{by_then:.0%} done "
        said.append(f"{known}by {until:%H:%M}")
    yield Text(" · ".join(said), style="yellow" if now.waits else "")


def _facts(now: Snapshot) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    rates, tally = now.rates, now.windows
    grid.add_row(
        "pace",
        f"{rates.calls:,.1f} calls/s · {rates.queries * 60:,.1f} queries/min · "
        f"{rates.prompt_tokens:,.0f}+{rates.completion_tokens:,.0f} tokens/s",
    )
    if trace := sparkline(now.trace):
        grid.add_row("", Text(trace, style="cyan"))
    grid.add_row(
        "calls",
        f"{counted(now.calls, 'call')}, {now.calls_saved:,} saved, {now.retries:,} retries · "
        f"{now.in_flight} of {now.capacity} in flight",
    )
    grid.add_row(
        "windows",
        f"{tally.ok:,} ok · {tally.repaired:,} repaired · {tally.fallback:,} fallback · "
        f"{tally.error:,} error",
    )
    for gate in now.gates:
        value = "" if gate.value is None else f"{gate.value:.1%}"
        limit = "" if gate.limit is None else f" of {gate.limit:.1%}"
        word = {None: "not known yet", True: "passed so far", False: "not passed"}[gate.passed]
        style = {None: "dim", True: "green", False: "red"}[gate.passed]
        grid.add_row("gate", Text.assemble(f"{gate.name} {value}{limit} ", (word, style)))
    return grid


def _servers(now: Snapshot) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("server")
    table.add_column("health")
    for name in ("in flight", "calls/s", "answered", "failed", "mean"):
        table.add_column(name, justify="right")
    for one in now.endpoints:
        table.add_row(
            Text(one_line(one.url)),
            Text(one.health, style=_STYLES[one.health]),
            f"{one.in_flight} of {one.limit}",
            f"{one.rate:,.1f}",
            f"{one.answered:,}",
            f"{one.failed:,}",
            duration(one.seconds / one.answered) if one.answered else "–",
        )
    return table


def _queries(recent: Sequence[Finished]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", expand=True)
    table.add_column("query", ratio=2, no_wrap=True, overflow="ellipsis")
    table.add_column("status", no_wrap=True)
    table.add_column("took", justify="right", no_wrap=True)
    table.add_column("the best, and where they were", ratio=2, no_wrap=True, overflow="ellipsis")
    for one in recent:
        table.add_row(
            Text(f"{one_line(one.qid)}  {one_line(one.query)}"),
            Text(one.status, style=_STYLES.get(one.status, "")),
            duration(one.seconds),
            Text(
                " ".join(f"{move.was}→{rank}" for rank, move in enumerate(one.top[:_MOVES], 1)),
                style="dim" if not one.risen else "",
            ),
        )
    return table
