"""`batchrank systemd-unit`: the units that run a job every night."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from batchrank.cli.paths import check_output
from batchrank.cli.tonight import input_of
from batchrank.formats.atomic import write_new
from batchrank.formats.wording import printable
from batchrank.nightly.systemd import systemd_units
from batchrank.spec.loading import load_spec
from batchrank.spec.times import parse_clock


def systemd_unit(
    job: Annotated[Path, typer.Argument(metavar="JOB", help="Job spec in TOML, with an input.")],
    at: Annotated[str, typer.Option("--at", metavar="HH:MM", help="When it starts.")] = "22:00",
    folder: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FOLDER", help="Write the files there, not on stdout."
        ),
    ] = None,
) -> None:
    """Print a systemd service and timer that run JOB every night and know its exit codes.

    A second service goes on, when the machine is up again, with a night that a reboot broke off.
    They run it in this folder, as paths in a job spec are relative to it.

    Example: batchrank systemd-unit nightly.toml --at 23:00 -o /etc/systemd/system
    """
    spec = load_spec(job, {})
    input_of(spec)
    clock = parse_clock(at, "--at")
    units = systemd_units(spec, job.absolute(), Path.cwd(), _program(), f"{clock:%H:%M}")
    if folder is None:
        for name, text in units.files.items():
            typer.echo(f"# {printable(name)}\n{printable(text)}")
        return
    for name, text in units.files.items():
        _write(folder / name, text)
    timer, boot = (shlex.quote(name) for name in (f"{units.name}.timer", units.boot_name))
    typer.echo(
        f"systemctl daemon-reload && systemctl enable --now {timer} && systemctl enable {boot}"
    )


def _program() -> Sequence[str]:
    """The command that started this."""
    found = shutil.which(sys.argv[0])
    return [str(Path(found).absolute())] if found else [sys.executable, "-m", "batchrank"]


def _write(path: Path, text: str) -> None:
    check_output(str(path), {})
    write_new(path, text)
    typer.echo(printable(str(path)))
