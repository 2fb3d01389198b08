"""The program's own flags, its commands, and what becomes of their errors."""

from __future__ import annotations

import os
import sys
import traceback
from difflib import get_close_matches
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException
from typer.main import get_group

from batchrank.cli.commands import COMMANDS
from batchrank.cli.early import INTERRUPTED
from batchrank.cli.streams import expect_json, fill_descriptors, print_failure
from batchrank.ending import leave
from batchrank.errors import BatchrankError, FilesError, StoppedError, UsageError
from batchrank.formats.atomic import silence_stdout
from batchrank.formats.wording import one_line, quoted
from batchrank.version import __version__


class _Commands(TyperGroup):
    """Loads a command when it is asked for: most calls need one, `--version` none."""

    def list_commands(self, ctx: Any) -> list[str]:  # typer keeps the class of contexts to itself
        """See `TyperGroup.list_commands`."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """See `TyperGroup.get_command`."""
        if (command := COMMANDS.get(cmd_name)) is None:
            near = get_close_matches(cmd_name, COMMANDS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"there is no command {cmd_name!r}{hint}")
        module, _, name = command.target.partition(":")
        holder = typer.Typer()
        target = getattr(import_module(module), name)
        if isinstance(target, typer.Typer):
            holder.add_typer(target, name=cmd_name, rich_help_panel=command.panel)
        else:
            holder.command(cmd_name, rich_help_panel=command.panel)(target)
        return get_group(holder).commands[cmd_name]


app = typer.Typer(
    name="batchrank",
    cls=_Commands,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Rerank whole query logs overnight with a language model on your own machines. "
    "A killed job resumes; nothing is asked twice; a bad answer never goes unnoticed.",
    epilog="Start with `batchrank check queries.jsonl`, then `batchrank doctor queries.jsonl`, "
    "then `batchrank run queries.jsonl`.",
)

_DEBUG = "BATCHRANK_DEBUG"
_CTRL_C = 130
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


def run_app() -> None:
    """Run the command line; an expected failure is one line on stderr and an exit code.

    With --json it is a JSON object on stdout too.
    """
    fill_descriptors()
    expect_json()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # whatever a terminal's encoding lacks
    try:
        code = app(prog_name=app.info.name, standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BatchrankError as error:
        told = FilesError() if FilesError.is_behind(error) else error
        code = _failed(str(told), told.exit_code)
    except TyperException as error:
        code = _failed(error.format_message(), UsageError.exit_code)
    except OSError as error:
        code = _failed(_os_failed(error), BatchrankError.exit_code)
    except KeyboardInterrupt:
        code = _CTRL_C  # between two steps of Typer's
    if code == _CTRL_C:
        code = _failed(INTERRUPTED, StoppedError.exit_code)
    leave(code or 0)


def _os_failed(error: OSError) -> str:
    if FilesError.is_behind(error):
        return str(FilesError())
    what = _stdout_failed() if error.filename is None else quoted(error.filename)
    return f"{what}: {error.strerror or error}"


def _stdout_failed() -> str:
    """What an error without a name is about: what standard output could not take is still there."""
    try:
        sys.stdout.flush()
    except OSError:
        silence_stdout()
        return "standard output"
    return "a file of this command can't be read or written (--debug shows which)"


def _failed(message: str, code: int) -> int:
    if os.environ.get(_DEBUG):
        traceback.print_exc()
    typer.echo(f"batchrank: error: {one_line(message)}", err=True)
    print_failure(message, code)
    return code
