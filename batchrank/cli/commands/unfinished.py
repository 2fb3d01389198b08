"""`batchrank unfinished`: whether a night broke off, for who starts again after a reboot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from batchrank.cli.tonight import broken_off_last, input_of
from batchrank.formats.wording import printable
from batchrank.spec.loading import load_spec
from batchrank.spec.walltime import local

_NONE = 1


def unfinished(
    job: Annotated[Path, typer.Argument(metavar="JOB", help="Job spec in TOML, with an input.")],
) -> None:
    """Say whether a night of JOB began and broke off: killed, stopped or failed, publishing too.

    For what starts a job again when its machine is up. A night whose time was up is over.

    Example: batchrank unfinished nightly.toml && batchrank run --job nightly.toml

    Exit code 0 where `run --job JOB` would go on with one, 1 where it would begin another.
    """
    input_of(load_spec(job, {}))
    run = broken_off_last(job)
    if run is None:
        typer.echo("no night is unfinished")
        raise typer.Exit(_NONE)
    began = f"{local(run.started):%Y-%m-%d %H:%M:%S}"
    typer.echo(f"run {run.id} of {printable(run.input)}, begun {began}, is unfinished")
