"""`--help` of every command is whole at 80 columns, and what it takes to show it is little."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from batchrank.cli.commands import COMMANDS
from tests.cli.running import batchrank
from tests.cli.walking import commands, leaves


def shown(words: tuple[str, ...]) -> str:
    """The help of a command on a terminal of 80 columns."""
    ended = batchrank(*words, "--help", env={"COLUMNS": "80"})
    assert (ended.code, ended.err) == (0, "")
    return ended.out.decode()


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_names_of_options_are_whole_at_80_columns(words: tuple[str, ...]) -> None:
    found = set(re.split(r"[\s,]+", shown(words)))
    names = {
        name
        for option in commands()[words].params
        for name in (*option.opts, *option.secondary_opts)
        if name.startswith("-")
    }
    assert "--help" in found
    assert names <= found


@pytest.mark.parametrize("words", list(leaves()), ids=" ".join)
def test_every_command_has_an_example(words: tuple[str, ...]) -> None:
    call = re.escape(" ".join(("batchrank", *words)))
    examples = [line for line in shown(words).splitlines() if "Usage:" not in line]
    assert any(re.search(rf"^ +(Example: )?{call}\b", line) for line in examples)


def test_commands_are_listed_in_their_groups() -> None:
    text = shown(())
    for name, place in COMMANDS.items():
        _, _, panel = text.partition(f"╭─ {place.panel} ─")
        assert re.search(rf"^│ {name} ", panel.partition("╰")[0], re.MULTILINE), name


def test_a_misspelt_command_names_the_right_one() -> None:
    ended = batchrank("inspekt", "q1")
    assert ended.code == 2
    assert ended.err == (
        "batchrank: error: there is no command 'inspekt'; did you mean 'inspect'?\n"
    )


def test_the_version_loads_no_command() -> None:
    """What a prompt or a health check calls must not load servers, stores and settings."""
    code = "import sys; sys.argv[1:] = ['--version']\nfrom batchrank.cli import main\n"
    code += "try:\n    main()\nfinally:\n    print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "batchrank 0" in done.stdout
    for heavy in ("aiohttp", "pydantic", "aiosqlite", "jinja2", "batchrank.spec"):
        assert f"'{heavy}'" not in done.stdout, heavy


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_shells_complete_commands(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # What Typer asks which shell it was started from.
    monkeypatch.setattr("shellingham.detect_shell", lambda: (name, name))
    typed = {
        "COMP_WORDS": "batchrank ins",
        "COMP_CWORD": "1",
        "_TYPER_COMPLETE_ARGS": "batchrank ins",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    ended = batchrank(env={**typed, "_BATCHRANK_COMPLETE": f"complete_{name}"})
    assert (ended.code, b"inspect" in ended.out) == (0, True)
    assert b"_BATCHRANK_COMPLETE" in batchrank("--show-completion").out
