"""`batchrank status`: how far a job is, how its runs ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from batchrank.cli import options
from batchrank.cli.display.runs import BY_HAND, Listed, runs_lines
from batchrank.cli.display.summary import totals_lines, way_lines
from batchrank.cli.loop import run_loop
from batchrank.cli.streams import print_json
from batchrank.errors import RejectedError, UsageError
from batchrank.formats.wording import counted, duration, printable
from batchrank.progress.snapshot import Snapshot
from batchrank.progress.status import read_status
from batchrank.results.causes import Cause, failures, fallbacks
from batchrank.spec.walltime import local
from batchrank.store.connection import is_there
from batchrank.store.history import taken_over_by
from batchrank.store.lock import is_locked
from batchrank.store.queries import Coverage, coverage
from batchrank.store.records import Run, Totals
from batchrank.store.store import Store
from batchrank.values import Tally

_STORE = Path("batchrank.sqlite")
_ENDINGS = {3: "rejected by a gate", 4: "stopped, no model server"}
_GOES_ON = "; the same command goes on"


def status(
    store: options.StoreFile = _STORE,
    number: options.RunNumber = None,
    runs: Annotated[bool, typer.Option("--runs", help="List all runs, the latest first.")] = False,
    as_json: options.JsonFlag = False,
) -> None:
    """Say how far a running job is, or how the latest run ended.

    Examples:

      batchrank status --store nightly.sqlite
      batchrank status --store nightly.sqlite --runs
    """
    if runs:
        if number is not None:
            raise UsageError("--runs lists all of them: leave --run out")
        _tell_runs(store, as_json=as_json)
        return
    if is_there(store) and is_locked(store) and (running := read_status(store)) is not None:
        if as_json:
            print_json(asdict(running))
            return
        typer.echo(
            f"running (process {running.process}): {printable(running.activity)}, "
            f"{running.told} finished, "
            f"{counted(running.calls, 'call')}, {duration(running.seconds)}"
            + (f", {duration(running.seconds_left)} left" if running.seconds_left else "")
        )
        return
    last = read_status(store)
    found = run_loop(_status(store, number))
    attempt = None
    if number is None and _is_later(last, None if found is None else found.run):
        attempt = last
    if found is None and attempt is None:
        raise UsageError(f"store {store} holds no run: `batchrank run` makes the first")
    if found is not None and found.run.ended is None:
        found = replace(found, run=_as_told(found.run, last))
    if as_json:
        value = {} if found is None else found.as_value()
        print_json({**value, "attempt": None if attempt is None else _as_attempt(attempt)})
        return
    lines = [] if attempt is None else [_attempted(attempt, is_first=found is None)]
    typer.echo("\n".join(lines if found is None else lines + _told(found)))


def _is_later(last: Snapshot | None, run: Run | None) -> bool:
    """Whether what told last is a command of which no run came, after the latest that did."""
    if last is None or last.run is not None or last.exit_code is None:
        return False
    return run is None or last.written > (run.ended or run.started)


def _as_attempt(last: Snapshot) -> dict[str, object]:
    return {"ended": last.written, "exit_code": last.exit_code, "reasons": list(last.reasons)}


def _attempted(last: Snapshot, *, is_first: bool) -> str:
    at = local(last.written)
    reasons = "; ".join(map(printable, last.reasons))
    before = "no run was before it" if is_first else "before it:"
    told = f"the last attempt, at {at:%Y-%m-%d %H:%M:%S}, ended with exit {last.exit_code}"
    return f"{told}: {reasons}; {before}"


@dataclass(frozen=True, slots=True)
class _Found:
    """All that is told of a run."""

    run: Run
    totals: Totals
    coverage: Coverage
    taken_over_by: int | None
    failures: list[Cause]
    fallbacks: list[Cause]

    def as_value(self) -> dict[str, object]:
        """The same for a machine."""
        return {
            **asdict(self.run),
            "queries": {str(name): count for name, count in self.totals.queries.items()},
            "windows": asdict(self.totals.tally),
            "coverage": asdict(self.coverage),
            "taken_over_by": self.taken_over_by,
            "failures": [asdict(cause) for cause in self.failures],
            "fallbacks": [asdict(cause) for cause in self.fallbacks],
        }


def _tell_runs(store: Path, *, as_json: bool) -> None:
    listed = run_loop(_runs(store))
    if as_json:
        print_json([one.as_value() for one in listed])
    else:
        typer.echo("\n".join(runs_lines(listed)))


def _told(found: _Found) -> list[str]:
    run = found.run
    started = local(run.started)
    part = f" (shard {run.shard})" if run.shard else ""
    lines = [
        f"run {run.id} of {printable(run.input)}{part}, begun {started:%Y-%m-%d %H:%M:%S}: "
        f"{_ending(run)}",
        f"model {printable(run.settings['model'])}, template {run.settings['template']}",
    ]
    if (later := found.taken_over_by) is not None:
        lines.append(f"what it ranked is in run {later}, which went on from it (--run {later})")
    else:
        lines += totals_lines(found.totals, found.coverage)
    if run.summary:
        lines += _summary_lines(run.summary)
    for name, step in run.steps.items():
        what = "published by hand" if name == BY_HAND else name
        lines.append(f"{what}: {printable(step)}")
    for what, causes in (("failed", found.failures), ("no ranking", found.fallbacks)):
        for cause in causes:
            lines.append(f"{what}, {printable(cause.reason)}: {cause.count:,}")
            lines += [f"  {printable(example)}" for example in cause.examples]
    return lines + _advice(found.totals.tally)


def _as_told(run: Run, last: Snapshot | None) -> Run:
    """A run whose store had no room for how it ended, as its last snapshot tells it."""
    if last is None or last.run != run.id or last.written < run.started:
        return run
    if (code := last.exit_code) is None:
        return run
    summary = {"seconds": last.seconds, "reasons": list(last.reasons)}
    return replace(run, ended=last.written, exit=code, night=code, summary=summary)


def _summary_lines(summary: Mapping[str, Any]) -> list[str]:
    """What a run's own summary told, beside counts and causes."""
    lines = way_lines(summary)
    lines += [f"  warning: {printable(warning)}" for warning in summary.get("warnings", [])]
    lines += [f"  {printable(reason)}" for reason in summary.get("reasons", [])]
    lines += [f"    for example {printable(example)}" for example in summary.get("examples", [])]
    return lines


def _advice(tally: Tally) -> list[str]:
    lines = []
    if tally.error:
        lines.append("the same command asks windows without an answer again")
    if tally.fallback:
        lines.append("`batchrank run` with --retry-fallbacks asks windows that fell back again")
    return lines


def _ending(run: Run) -> str:
    if run.ended is None:
        return "did not end (killed, or its store could not be written); the same command goes on"
    if (shards := (run.summary or {}).get("joined")) is not None:
        return f"joined from {counted(shards, 'shard')}, not judged yet"
    # Measured, since the difference of two times on the wall may be anything.
    took = duration((run.summary or {}).get("seconds", 0.0))
    if run.night == run.exit:
        told = {**_ENDINGS, 0: "complete", 75: "stopped early"}
        goes_on = _GOES_ON if run.exit in (4, 75) else ""
        return f"{told.get(run.exit or 0, 'failed')}{goes_on} (exit {run.exit}) after {took}"
    told = {**_ENDINGS, 0: "ranked", 75: "stopped early"}
    ranked = f"{told.get(run.exit or 0, 'failed')} after {took}"
    if run.night is None:
        return (
            f"{ranked}, then killed before the steps after the run had ended; the same command "
            "goes on"
        )
    if run.night == RejectedError.exit_code:
        return (
            f"{ranked}, but a step after it was refused (exit {run.night}), as the same command "
            "would be again with these settings"
        )
    return f"{ranked}, but a step after it failed (exit {run.night}); the same command repeats it"


async def _status(path: Path, number: int | None) -> _Found | None:
    """What is told of a run; None where the latest is asked for and there is none."""
    async with await Store.open(path) as store:
        if number is None and not await store.runs():
            return None
        run = await store.run(number)
        return _Found(
            run,
            await store.totals(run.id),
            await coverage(store, run.id),
            await taken_over_by(store, run),
            await failures(store, run),
            await fallbacks(store, run),
        )


async def _runs(path: Path) -> list[Listed]:
    async with await Store.open(path) as store:
        return [
            Listed(run, await coverage(store, run.id), await taken_over_by(store, run))
            for run in await store.runs()
        ]
