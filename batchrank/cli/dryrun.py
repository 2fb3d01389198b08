"""`batchrank run --dry-run`: what a job takes, without a model."""

from __future__ import annotations

import typer

from batchrank.cli.loop import run_loop
from batchrank.cli.streams import print_json
from batchrank.forecast import forecast
from batchrank.job import Job
from batchrank.jobspec import JobSpec, load_templates
from batchrank.preflight import Profile
from batchrank.values import Form


def dry_run(spec: JobSpec, source: str, *, as_json: bool) -> None:
    """Print queries, windows, calls and estimated tokens."""
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
    found = run_loop(forecast(Job(spec, templates, profile), source))
    if as_json:
        print_json(found.as_dict())
        return
    typer.echo(f"queries            {found.queries:>14,}")
    if found.failed:
        typer.echo(f"unusable lines     {found.failed:>14,}")
    typer.echo(f"windows            {found.windows:>14,}")
    typer.echo(f"calls              {found.calls:>14,}")
    typer.echo(f"prompt tokens      {found.prompt_tokens:>14,}  (estimated)")
    typer.echo(f"generated tokens   {found.completion_tokens:>14,}  (estimated)")
    typer.echo(f"largest prompt     {found.largest_prompt:>14,}  tokens (estimated)")
    typer.echo("no model was asked; `batchrank doctor FILE` measures how long it takes")
