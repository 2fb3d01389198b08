"""Sees that what a command's errors advise can be done: it has the flags that they name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from typer.main import get_group

from batchrank.cli.app import app
from batchrank.cli.commands import COMMANDS

_FLAG = re.compile(r"(?<![\w-])(?:--[a-z][a-z-]+|-[a-z](?![\w-]))")
_QUOTED = re.compile(r"`[^`]*`|'[^']*'")
"""Other commands, and what was given."""


def check_advice(arguments: Sequence[object], said: str) -> None:
    """AssertionError where an error of a command names a flag that the command does not have."""
    given = list(map(str, arguments))
    errors = [line for line in said.splitlines() if line.startswith("batchrank: error: ")]
    named = set(_FLAG.findall(_QUOTED.sub("", "\n".join(errors)))) - set(given)
    if named and given and given[0] in COMMANDS:
        unknown = named - _flags_of(given[0])
        assert not unknown, f"{given[0]} has no {', '.join(sorted(unknown))}: {said}"


@cache
def _flags_of(name: str) -> set[str]:
    """The flags of the program, and of a command or all the commands of a group."""
    program: Any = get_group(app)
    command = program.get_command(None, name)
    commands = [program, command, *getattr(command, "commands", {}).values()]
    return {
        flag
        for one in commands
        for parameter in one.params
        for flag in (*parameter.opts, *parameter.secondary_opts)
    }
