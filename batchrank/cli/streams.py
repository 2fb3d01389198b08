"""What commands write to standard output for machines, and what is done where it is closed."""

from __future__ import annotations

import os

import orjson
import typer


def print_json(value: object) -> None:
    """Write one JSON value, indented."""
    typer.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2))


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
