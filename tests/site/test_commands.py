"""Every command in README and docs does what it says: it runs, in the order of its page."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import pytest

from batchrank.cli.commands import COMMANDS
from scripts.judge import JudgeServer
from tests.cli.running import batchrank
from tests.site.commands import PAGES, mentioned, shown, words

FIRST_SERVER = r"http://gpu1:\d+"
OTHER_SERVERS = r"http://gpu\d:\d+"
CACHE = "redis://cache:6379/0"
ELSEWHERE = {
    "--engine ray": "tests/distributed runs it, on a cluster",
    "--backend embedded": "`make demo` and tests/embedded run it, on weights of 253 MB",
}
"""What is in a command that runs in another place than here, and where."""


def runs_here(command: str) -> bool:
    return not any(part in command for part in ELSEWHERE)


def judge_by_hand(desk: Path) -> None:
    """What a person does with the labels that are for them to check."""
    for labels in desk.glob("*.check.jsonl"):
        labels.write_text(labels.read_text().replace('"corrected":null', '"corrected":1'))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_code_run(
    page: Path, desk: Path, sample_server: JudgeServer, request: pytest.FixtureRequest
) -> None:
    for command in filter(runs_here, shown(page)):
        judge_by_hand(desk)
        there = re.sub(FIRST_SERVER, sample_server.url, command)
        # The same by another name: none may be named twice.
        alias = sample_server.url.replace("127.0.0.1", "localhost")
        there = re.sub(OTHER_SERVERS, alias, there)
        if CACHE in there:
            there = there.replace(CACHE, request.getfixturevalue("cache_server").url)
        ended = batchrank(*words(there))
        assert ended.code == 0, f"{command}: {ended.err}{ended.out.decode()}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_the_text_exist(page: Path) -> None:
    for command in {*mentioned(page), *shown(page)}:
        name, *arguments = words(command.replace("|", " "))
        if name.startswith(("-", "[")):
            continue  # `batchrank --version`
        assert name in COMMANDS, command
        flags = {one.partition("=")[0] for one in arguments if one.startswith("--")}
        group = (name, arguments[0]) if name == "template" else (name,)
        known = batchrank(*group, "--help", env={"COLUMNS": "200"}).out.decode()
        assert all(flag in known for flag in flags), command


def test_there_are_commands() -> None:
    assert len(list(chain.from_iterable(map(shown, PAGES)))) >= 30


def test_every_row_of_the_troubleshooting_ends_in_a_command() -> None:
    (page,) = (page for page in PAGES if page.name == "troubleshooting.md")
    rows = [line for line in page.read_text().splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 10
    assert len(shown(page)) == len(rows)
