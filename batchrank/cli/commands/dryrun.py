"""`batchrank run --dry-run`: what a job takes, without a model."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, replace

import typer

from batchrank.calls import Form
from batchrank.cli.display.summary import night_lines
from batchrank.cli.loop import run_loop
from batchrank.cli.streams import print_json
from batchrank.cli.talk import Talk
from batchrank.clock import SystemClock
from batchrank.formats.wording import duration
from batchrank.planning.forecast import Forecast, forecast
from batchrank.planning.known import known_lines
from batchrank.planning.outlook import Outlook, end_of_next, look_ahead
from batchrank.ranking.job import Job
from batchrank.running.lastjob import profile_of_last, told_of_other
from batchrank.running.night import End
from batchrank.serving.preflight import Profile
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.loading import load_templates
from batchrank.store.history import last_pace
from batchrank.store.profiles import recall
from batchrank.store.store import Store


def dry_run(
    spec: JobSpec, source: str, *, fresh: bool, retry_fallbacks: bool, as_json: bool
) -> None:
    """Print queries, windows, calls and estimated tokens of a run with these flags."""
    templates = load_templates(spec)
    # No server is asked: windows as wished for, answers in the form that costs most of those
    # that are likely, tokens by the plain estimate.
    profile = Profile(
        kind="unknown",
        model=spec.model or "",
        identity="",
        form=Form.JSON,
        context=None,
        slots=None,
        window_size=spec.largest,
        max_doc_tokens=spec.max_doc_tokens,
        token_ratio=1.0,
    )
    now = SystemClock().wall()
    job = Job(spec, templates, profile)
    work = _looked_ahead(job, source, now, fresh=fresh, again=retry_fallbacks)
    found, end, outlook, warning = run_loop(work)
    if warning is not None:
        Talk().say(f"warning: {warning}")
    if as_json:
        told = asdict(outlook) if outlook else None
        shown = {**found.as_dict(), "night": asdict(end), "outlook": told, "warning": warning}
        print_json(shown)
        return
    typer.echo(f"queries            {found.queries:>14,}")
    if found.known:
        typer.echo(f"ranked already     {found.known:>14,}  (in {spec.store})")
    if found.failed:
        typer.echo(f"unusable lines     {found.failed:>14,}")
    typer.echo(f"windows            {found.windows:>14,}")
    typer.echo(f"calls              {found.calls:>14,}")
    typer.echo(f"prompt tokens      {found.prompt_tokens:>14,}  (estimated)")
    typer.echo(f"generated tokens   {found.completion_tokens:>14,}  (estimated)")
    typer.echo(f"largest prompt     {found.largest_prompt:>14,}  tokens (estimated)")
    if outlook is None:
        typer.echo("no model was asked; `batchrank doctor FILE` measures how long it takes")
    else:
        typer.echo(
            f"at the pace of the last run in {spec.store} about {duration(outlook.hours * 3600)}"
            + (" for what is left" if found.known else "")
        )
    for line in night_lines(spec, end, outlook, now):
        typer.echo(line)


async def _looked_ahead(
    job: Job, source: str, now: float, *, fresh: bool, again: bool
) -> tuple[Forecast, End, Outlook | None, str | None]:
    """The forecast, the end of a run, the outlook at the pace of the last that asked, a warning."""
    pace = next_job = warning = None
    if await asyncio.to_thread(job.spec.store.is_file):
        async with await Store.open(job.spec.store) as store:
            pace = await last_pace(store)
            # The job that a run would go on with: that of the server as it was last.
            if (remembered := await recall(store, job.spec.target())) is not None:
                next_job = replace(job, profile=Profile.from_dict(remembered))
            elif last := await profile_of_last(store, job.spec, job.templates):
                next_job = replace(job, profile=last)
            asked = next_job is not None
            warning = await told_of_other(store, source, next_job or job, asked=asked)
    if next_job is None or fresh:
        found = await forecast(job, source)
    else:
        async with known_lines(next_job, again=again) as known:
            found = await forecast(job, source, known=known)
    end = await end_of_next(job.spec, next_job.key if next_job else None, now)
    outlook = await look_ahead(job, source, found, pace, end, now) if pace else None
    return found, end, outlook, warning
