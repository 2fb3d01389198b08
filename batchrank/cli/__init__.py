"""The command line: parses flags, calls the program, prints; one file a group of commands."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Annotated

import typer

from batchrank import __version__
from batchrank.cli.check import check, doctor
from batchrank.cli.keep import backup
from batchrank.cli.look import export, inspect, status
from batchrank.cli.measure import compare_command, evaluate_command
from batchrank.cli.run import run
from batchrank.cli.talk import printable
from batchrank.errors import BatchrankError

app = typer.Typer(
    name="batchrank",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Rerank whole query logs overnight with a language model on your own machines. "
    "A killed job resumes; nothing is asked twice; a bad answer never goes unnoticed.",
    epilog="Start with `batchrank check queries.jsonl`, then `batchrank doctor queries.jsonl`, "
    "then `batchrank run queries.jsonl`.",
)
for command, panel in (
    (run, "Run"),
    (check, "Run"),
    (doctor, "Run"),
    (status, "Look"),
    (inspect, "Look"),
    (export, "Look"),
    (backup, "Look"),
):
    app.command(rich_help_panel=panel)(command)
app.command("eval", rich_help_panel="Measure")(evaluate_command)
app.command("compare", rich_help_panel="Measure")(compare_command)

_DEBUG = "BATCHRANK_DEBUG"


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"batchrank {__version__}")
        raise typer.Exit


@app.callback()
def _global(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    if debug:
        os.environ[_DEBUG] = "1"


def main() -> None:
    """Run the command line; an expected failure is one line on stderr and an exit code."""
    try:
        app()
    except BatchrankError as error:
        if os.environ.get(_DEBUG):
            traceback.print_exc()
        print(f"batchrank: error: {printable(str(error))}", file=sys.stderr)  # noqa: T201
        sys.exit(error.exit_code)
