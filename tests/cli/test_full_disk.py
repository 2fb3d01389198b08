"""No room for one of the files a command writes: it says which, whichever that is."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scripts.judge import JudgeServer
from tests.cli.conftest import Shell
from tests.cli.running import Row, batchrank, gain
from tests.evaluation.files import qrels

SIZES = (0, 1, 20, 100, 1_000, 4_096, 5_000, 12_288, 20_000, 40_000, 2_000_000)
"""Bytes at which a write fails: of the lock first, of the store's parts, of what comes after it."""


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Let the system refuse to make any file of this process larger, like a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def judged(tmp_path: Path, rows: list[Row]) -> Path:
    grades = {
        row["query"]["qid"]: {
            one["docid"]: round(3 * gain(row["query"]["qid"], one["docid"]))
            for one in row["candidates"]
        }
        for row in rows
    }
    return qrels(tmp_path / "qrels", grades)


@pytest.mark.parametrize("command", ["run", "diagnose", "label", "tune"])
def test_a_command_names_the_file_that_has_no_room(
    source: Path, judged: Path, server: JudgeServer, tmp_path: Path, command: str
) -> None:
    more = {
        "run": ("-o", tmp_path / "o"),
        "diagnose": (),
        "label": ("-o", tmp_path / "o"),
        "tune": ("--qrels", judged, "-o", tmp_path / "o.toml", "--budget", 6),
    }
    codes = []
    for size in SIZES:
        store = tmp_path / f"{size}.sqlite"
        with files_of_at_most(size):
            ended = batchrank(
                command, source, "--store", store, "--base-url", server.url, *more[command]
            )
        codes.append(ended.code)
        said = ended.err.splitlines()[-1] if ended.err else ""
        if ended.code:
            assert ended.code == 1, (size, ended.err)
            assert said.startswith("batchrank: error: "), (size, ended.err)
            assert str(tmp_path) in said or "sample.jsonl" in said, (size, said)
            assert "File too large" in said or "disk I/O" in said or "full" in said, (size, said)
    assert codes[0] == 1
    assert codes[-1] == 0


@pytest.mark.parametrize("size", [0, 20])
def test_a_new_file_is_there_whole_or_not_at_all(source: Path, tmp_path: Path, size: int) -> None:
    job = tmp_path / "job.toml"
    commands = {
        job: ("init", source, "-o", job, "--base-url", "http://127.0.0.1:9"),
        tmp_path / "out.trec": ("convert", source, tmp_path / "out.trec"),
    }
    for made, command in commands.items():
        with files_of_at_most(size):
            ended = batchrank(*command)
        assert ended.code in (1, 4), ended.err
        assert not made.exists()


def test_an_error_without_a_name_is_not_taken_for_standard_output(
    source: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("batchrank.cli.commands.check.check_lines", broken)
    ended = batchrank("check", source)
    assert ended.code == 1
    assert "standard output" not in ended.err
    assert "No space left on device" in ended.err
