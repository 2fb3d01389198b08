"""Every command of the command line, by introspection: what is true of all is tested over all."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from typer.main import get_command

from batchrank.cli.app import app

Path = tuple[str, ...]


@cache
def commands() -> dict[Path, Any]:
    """Each command and group by the words that call it, the program itself by none."""
    root = get_command(app)
    context = root.make_context("batchrank", [], resilient_parsing=True)
    return dict(_below(root, (), context))


def leaves() -> dict[Path, Any]:
    """The commands that do something: all but groups."""
    return {
        words: command
        for words, command in commands().items()
        if not hasattr(command, "list_commands")
    }


def _below(command: Any, words: Path, context: Any) -> Iterator[tuple[Path, Any]]:
    yield words, command
    if hasattr(command, "list_commands"):
        for name in command.list_commands(context):
            yield from _below(command.get_command(context, name), (*words, name), context)
