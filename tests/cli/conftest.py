"""A small input, a judge that knows it, and a command line with a store of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from scripts.judge import JudgeServer
from tests.cli.running import Result, Row, batchrank, judge, requests, serving, written


@pytest.fixture
def rows() -> list[Row]:
    """Three queries with twelve candidates each."""
    return requests(queries=3, candidates=12)


@pytest.fixture
def source(tmp_path: Path, rows: list[Row]) -> Path:
    """`rows` as a file."""
    return written(tmp_path / "in.jsonl", rows)


@pytest.fixture
def server(rows: list[Row]) -> Iterator[JudgeServer]:
    """A judge of `rows`."""
    with serving(judge(rows)) as running:
        yield running


@dataclass(frozen=True)
class Shell:
    """The command line with a store in a folder of its own, and a server's address."""

    folder: Path
    url: str

    @property
    def store(self) -> Path:
        """The store of all runs."""
        return self.folder / "store.sqlite"

    def run(self, *arguments: object, stdin: bytes = b"") -> Result:
        """`batchrank run` in windows of six: two segments and a merge for twelve candidates."""
        given = ("run", *arguments, "--store", self.store, "--base-url", self.url)
        return batchrank(*given, "--window-size", "6", stdin=stdin)

    def look(self, command: str, *arguments: object) -> Result:
        """A command that reads the store."""
        return batchrank(command, *arguments, "--store", self.store)


@pytest.fixture
def shell(tmp_path: Path, server: JudgeServer) -> Shell:
    """Runs jobs of `server` in `tmp_path`."""
    return Shell(tmp_path, server.url)
