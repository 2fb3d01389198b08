"""Closed, full and broken standard streams, and Ctrl-C at any moment: one line and an exit code."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.cli.running import batchrank, rows_of
from tests.conftest import ROOT
from tests.waiting import PATIENCE

TRACEBACK = "Traceback (most recent call last)"


def _shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A shell command in which `batchrank` is the command line."""
    return subprocess.run(
        ["sh", "-c", f'batchrank() {{ "{sys.executable}" -m batchrank "$@"; }}; {command}'],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("batchrank check in.jsonl > /dev/full", 1, "No space left on device"),
        ("batchrank check in.jsonl >&- <&- 2>&-", 0, None),
        ("batchrank export -o - >&-", 2, "standard output is closed"),
        ("batchrank check - <&-", 2, "Standard input is closed"),
    ],
)
def test_a_stream_that_is_closed_or_full(
    source: Path, tmp_path: Path, command: str, code: int, said: str | None
) -> None:
    ended = _shell(command, source.parent)
    assert ended.returncode == code, ended.stderr
    if said is None:
        assert ended.stderr == ""
    else:
        (line,) = ended.stderr.splitlines()
        assert line.startswith("batchrank: error: ")
        assert said in line


def test_a_run_without_standard_streams_writes_what_it_should(
    source: Path, shell: Shell, tmp_path: Path
) -> None:
    where = f"--store store --base-url {shell.url} --window-size 6 -o out.jsonl"
    ended = _shell(f"batchrank run in.jsonl {where} >&- 2>&- <&-", tmp_path)
    assert ended.returncode == 0
    assert len(rows_of(tmp_path / "out.jsonl")) == 3
    assert batchrank("status", "--store", tmp_path / "store").code == 0


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 75, "interrupted"),
        (OSError(5, "Input/output error"), 1, "Input/output error"),
        (PermissionError(13, "Permission denied", "in.jsonl"), 1, "'in.jsonl': Permission denied"),
    ],
)
def test_what_no_command_catches_is_one_line(
    source: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, said: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("batchrank.cli.commands.check.check_lines", fail)
    ended = batchrank("check", source)
    assert ended.code == code
    (line,) = ended.err.splitlines()
    assert line.startswith("batchrank: error: ")
    assert said in line
    if not isinstance(error, KeyboardInterrupt):
        assert TRACEBACK in batchrank("--debug", "check", source).err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run"], "no input"),
        (["runn"], "runn"),
        (["run", "x", "--windw-size", "3"], "--window-size"),
        (["run", "x", "--depth", "many"], "--depth"),
        (["status", "--run", "last"], "--run"),
    ],
)
def test_a_usage_error_is_one_line(arguments: list[str], said: str) -> None:
    ended = batchrank(*arguments)
    assert (ended.code, ended.out) == (2, b"")
    (line,) = ended.err.splitlines()
    assert line.startswith("batchrank: error: ")
    assert said in line


def test_without_a_command_there_is_help() -> None:
    ended = batchrank()
    assert ended.code == 2
    assert b"Usage: batchrank" in ended.out
    assert ended.err == ""


SIGNALS_ITSELF = """
import os, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["WHILE_LOADING"]:
            os.kill(os.getpid(), int(os.environ["SIGNAL"]))

sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    # The last as the loop begins, when all is loaded and no command hears signals yet.
    "module",
    ["batchrank.cli.app", "rich", "batchrank.cli.commands.run", "orjson", "uvloop"],
)
def test_a_signal_before_a_command_hears_signals(
    source: Path, tmp_path: Path, number: signal.Signals, module: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(SIGNALS_ITSELF)
    ended = subprocess.run(
        [sys.executable, "-m", "batchrank", "run", source, "--dry-run"],
        env={
            **os.environ,
            "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}",
            "WHILE_LOADING": module,
            "SIGNAL": str(int(number)),
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (75, "")
    told = "interrupted; nothing is lost: give the same command again"
    assert ended.stderr == f"batchrank: error: {told}\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("place", "reason"),
    [
        # Before there is a server, and before the run hears signals itself.
        ("batchrank.running.runner.Session.open", "{name} received"),
        ("batchrank.cli.tonight.spec_of_the_night", "interrupted"),
    ],
)
def test_a_signal_before_there_is_a_run_says_that_nothing_is_lost(
    source: Path,
    shell: Shell,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
    place: str,
    reason: str,
) -> None:
    async def signalled(*_: object, **_how: object) -> None:
        os.kill(os.getpid(), number)
        await asyncio.Event().wait()

    with monkeypatch.context() as patched:
        patched.setattr(place, signalled)
        ended = shell.run(source)
    assert ended.code == 75
    told = f"{reason.format(name=number.name)}; nothing is lost: give the same command again"
    assert ended.err.splitlines()[-1] == f"batchrank: error: {told}"
    assert shell.run(source).code == 0
