"""What commands write to standard output for machines, and what is done where it is closed."""

from __future__ import annotations

import os
import sys

import orjson
import typer

from batchrank.formats.atomic import silence_stdout

_is_json_due = False


def expect_json() -> None:
    """Note, as a command begins, whether it is to write JSON: before flags that may be wrong."""
    global _is_json_due  # noqa: PLW0603 - standard output is the process's
    _is_json_due = "--json" in sys.argv


def print_json(value: object) -> None:
    """Write one JSON value, indented: all that a command with --json writes."""
    global _is_json_due  # noqa: PLW0603 - as above
    _is_json_due = False
    typer.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2))


def print_failure(message: str, code: int) -> None:
    """Write how a command with --json failed, unless its JSON is written already."""
    if not _is_json_due or sys.stdout is None:
        return
    try:
        print_json({"exit_code": code, "reasons": [message]})
        sys.stdout.flush()
    except OSError:  # nobody reads it
        silence_stdout()


def fill_descriptors() -> None:
    """Open standard streams that are closed to nowhere.

    Otherwise the next file that is opened, a store say, gets the number of standard error, and
    what a library writes there ends up in it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
