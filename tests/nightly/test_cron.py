"""The lines for cron in the docs do as they say in the environment that cron gives them."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from batchrank.store.store import Store
from scripts.judge import JudgeServer
from tests.cli.running import batchrank, judge, requests, rows_of, serving, windows, written
from tests.conftest import ROOT
from tests.waiting import PATIENCE

ROWS = requests(queries=3, candidates=6)
LINE = re.compile(r"^    (@reboot|(?:[\d*]+ ){4}[\d*]+)  (\S.*)$", re.MULTILINE)
PLACE = "/srv/batchrank"
CRONS_OWN = {"SHELL": "/bin/sh", "HOME": "/", "LOGNAME": "nobody", "PATH": "/usr/bin:/bin"}
"""As crontab(5) has it."""
PLAIN, PERSISTENT, AT_BOOT = (
    command for _, command in LINE.findall((ROOT / "docs" / "scheduling.md").read_text())
)


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with serving(judge(ROWS)) as running:
        yield running


@pytest.fixture
def place(tmp_path: Path, server: JudgeServer) -> Path:
    """What is in /srv/batchrank: a program, a job, its input."""
    program(tmp_path, f'exec "{sys.executable}" -m batchrank "$@"')
    (tmp_path / "nightly.toml").write_text(
        f'input = "log.jsonl"\noutput = "out.jsonl"\nstore = "all.sqlite"\n'
        f'base_url = "{server.url}"\n'
    )
    written(tmp_path / "log.jsonl", ROWS)
    return tmp_path


def program(place: Path, text: str) -> None:
    """Let the line start this in place of an installed batchrank."""
    path = place / ".venv" / "bin" / "batchrank"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\nexport PYTHONPATH="{ROOT}"\n{text}\n')
    path.chmod(0o755)


def run_by_cron(command: str, place: Path) -> int:
    """The exit code of a line's command; what it sleeps is written to a file."""
    assert "%" not in command, "cron makes newlines of them"
    assert PLACE in command
    told = f'sleep() {{ echo "$1" >> "{place}/slept"; }}; {command.replace(PLACE, str(place))}'
    given = (f"{name}={value}" for name, value in CRONS_OWN.items())
    ended = subprocess.run(
        ["env", "-i", *given, "/bin/sh", "-c", told],
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    # cron sends a mail with whatever comes out.
    assert (ended.stdout, ended.stderr) == (b"", b"")
    return ended.returncode


@pytest.mark.parametrize("command", [PLAIN, PERSISTENT])
def test_the_night_is_run(place: Path, command: str) -> None:
    assert run_by_cron(command, place) == 0
    assert len(rows_of(place / "out.jsonl")) == len(ROWS)
    log = (place / "nightly.log").read_text()
    assert "written to out.jsonl" in log
    assert "Traceback" not in log
    assert not (place / "slept").exists()


@pytest.mark.parametrize(
    ("codes", "ends", "starts"),
    [
        ([1, 4, 0, 9], 0, 3),
        ([4, 75, 9], 75, 2),
        ([2, 9], 2, 1),
        ([3, 9], 3, 1),
        ([4] * 241, 4, 240),
    ],
)
def test_what_failed_is_started_again(
    place: Path, codes: list[int], ends: int, starts: int
) -> None:
    (place / "codes").write_text("".join(f"{code}\n" for code in codes))
    program(place, 'read code < codes; sed -i 1d codes; echo "$code"; exit "$code"')
    ended = run_by_cron(PERSISTENT, place)
    assert ended == ends
    assert (place / "nightly.log").read_text().split() == list(map(str, codes[:starts]))
    slept = (place / "slept").read_text().split() if (place / "slept").exists() else []
    assert slept == ["60"] * sum(code in (1, 4) for code in codes[:starts])


def test_a_boot_goes_on_with_a_night_and_begins_none(place: Path, server: JudgeServer) -> None:
    async def killed() -> None:
        async with await Store.open(place / "all.sqlite", create=True) as store:
            await store.begin_run(b"job", {}, "log.jsonl", "out.jsonl", fresh=False)

    assert run_by_cron(AT_BOOT, place) == 1
    assert (place / "nightly.log").read_text() == "no night is unfinished\n"
    assert not (place / "out.jsonl").exists()
    asyncio.run(killed())
    assert run_by_cron(AT_BOOT, place) == 0
    assert len(rows_of(place / "out.jsonl")) == len(ROWS)
    asked = len(windows(server))
    assert run_by_cron(AT_BOOT, place) == 1
    assert len(windows(server)) == asked
    assert len(batchrank("status", "--store", place / "all.sqlite", "--runs", "--json").json) == 2
