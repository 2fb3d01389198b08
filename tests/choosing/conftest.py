"""Twenty queries with thirty candidates each, their judgements, and a command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import Result, Row, batchrank, gain, requests, written
from tests.evaluation.files import qrels

QUERIES, CANDIDATES = 20, 24


@pytest.fixture(scope="session")
def rows() -> list[Row]:
    return requests(QUERIES, CANDIDATES)


@pytest.fixture
def source(tmp_path: Path, rows: list[Row]) -> Path:
    """`rows` as a file."""
    return written(tmp_path / "in.jsonl", rows)


@pytest.fixture
def judged(tmp_path: Path, rows: list[Row]) -> Path:
    """Grades from 0 to 3 for every candidate, by what the judge knows."""
    grades = {
        row["query"]["qid"]: {
            candidate["docid"]: round(3 * gain(row["query"]["qid"], candidate["docid"]))
            for candidate in row["candidates"]
        }
        for row in rows
    }
    return qrels(tmp_path / "qrels", grades)


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands' default files are made in the working directory."""
    monkeypatch.chdir(tmp_path)


def asked(command: str, *arguments: object) -> Result:
    """A command that has to succeed."""
    result = batchrank(command, *arguments)
    assert result.code == 0, result.err
    return result
