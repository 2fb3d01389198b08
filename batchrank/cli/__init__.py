"""The command line: parses flags, calls the program, prints; one file a group of commands."""

from __future__ import annotations

import os
import sys
import traceback
from io import TextIOWrapper
from typing import Annotated

import typer
from typer.exceptions import TyperException

from batchrank import __version__
from batchrank.cli import template
from batchrank.cli.check import check, doctor
from batchrank.cli.inspect import inspect
from batchrank.cli.keep import backup, gc
from batchrank.cli.look import export, status
from batchrank.cli.measure import compare_command, evaluate_command
from batchrank.cli.run import run
from batchrank.cli.schedule import systemd_unit
from batchrank.cli.streams import fill_descriptors
from batchrank.cli.talk import one_line
from batchrank.cli.tune import diagnose_command, label_command, tune_command
from batchrank.errors import BatchrankError, StoppedError, UsageError
from batchrank.formats.atomic import silence_stdout
from batchrank.formats.wording import quoted

app = typer.Typer(
    name="batchrank",
    invoke_without_command=True,
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
    (systemd_unit, "Run"),
    (status, "Look"),
    (inspect, "Look"),
    (export, "Look"),
    (backup, "Maintain"),
    (gc, "Maintain"),
):
    app.command(rich_help_panel=panel)(command)
app.command("eval", rich_help_panel="Measure")(evaluate_command)
app.add_typer(template.app, name="template", rich_help_panel="Look")
app.command("compare", rich_help_panel="Measure")(compare_command)
app.command("diagnose", rich_help_panel="Choose")(diagnose_command)
app.command("tune", rich_help_panel="Choose")(tune_command)
app.command("label", rich_help_panel="Choose")(label_command)

_DEBUG = "BATCHRANK_DEBUG"
_INTERRUPTED = 130
"""How Typer ends on Ctrl-C where a command does not catch it itself."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"batchrank {__version__}")
        raise typer.Exit


@app.callback()
def _global(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    if debug:
        os.environ[_DEBUG] = "1"
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(UsageError.exit_code)


def main() -> None:
    """Run the command line; an expected failure is one line on stderr and an exit code."""
    fill_descriptors()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # whatever a terminal's encoding lacks
    try:
        code = app(standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BatchrankError as error:
        code = _failed(str(error), error.exit_code)
    except TyperException as error:
        code = _failed(error.format_message(), UsageError.exit_code)
    except OSError as error:
        silence_stdout()
        what = "standard output" if error.filename is None else quoted(error.filename)
        code = _failed(f"{what}: {error.strerror or error}", BatchrankError.exit_code)
    if code == _INTERRUPTED:
        code = _failed("interrupted", StoppedError.exit_code)
    sys.exit(code)


def _failed(message: str, code: int) -> int:
    if os.environ.get(_DEBUG):
        traceback.print_exc()
    typer.echo(f"batchrank: error: {one_line(message)}", err=True)
    return code
