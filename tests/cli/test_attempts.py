"""A command of which no run came is told by `status`, `watch` and the metrics."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from batchrank.progress.status import status_path
from batchrank.store.lock import store_lock
from tests.cli.conftest import Shell
from tests.cli.running import Result, batchrank


@pytest.fixture
def prom(tmp_path: Path) -> Path:
    return tmp_path / "night.prom"


def told(prom: Path, metric: str) -> float | None:
    found = re.search(rf"^batchrank_{metric}\{{.*\}} (\S+)$", prom.read_text(), re.MULTILINE)
    return None if found is None else float(found[1])


def status(shell: Shell, *more: str) -> Result:
    return batchrank("status", "--store", shell.store, *more)


def test_attempts_after_a_good_night(shell: Shell, source: Path, prom: Path) -> None:
    where = ("--metrics-textfile", prom)
    assert shell.run(source, *where).code == 0
    good = told(prom, "last_success_timestamp_seconds")
    assert (told(prom, "exit_code"), good is not None) == (0, True)
    missing = source.with_name("tonight.jsonl")
    for code, command in (
        (2, (missing, *where)),
        (4, (source, *where, "--model", "other")),
        (2, (source, *where, "--gate-qrels", missing)),
    ):
        ended = shell.run(*command)
        assert ended.code == code, ended.err
        assert told(prom, "exit_code") == code
        assert told(prom, "running") == 0
        assert told(prom, "last_success_timestamp_seconds") == good
        first, second, *_ = status(shell).out.decode().splitlines()
        assert f"ended with exit {code}: " in first
        assert first.endswith("; before it:")
        assert second.startswith("run 1 of ")
        assert status(shell, "--json").json["attempt"]["exit_code"] == code
        assert batchrank("watch", shell.store).code == code
    assert shell.run(source, *where).code == 0
    assert status(shell).out.decode().startswith("run 2 of ")
    assert status(shell, "--json").json["attempt"] is None


def test_a_store_without_runs(shell: Shell, source: Path) -> None:
    nobody = ("--base-url", "http://127.0.0.1:9")
    assert batchrank("run", source, "--store", shell.store, *nobody).code == 4
    assert "no run was before it" in status(shell).out.decode()
    status_path(shell.store).unlink()
    found = status(shell)
    assert found.code == 2
    assert "holds no run" in found.err
    assert "batchrank status" not in found.err


def test_what_another_run_tells_stays(shell: Shell, source: Path, prom: Path) -> None:
    assert shell.run(source, "--metrics-textfile", prom).code == 0
    before = prom.read_bytes(), status_path(shell.store).read_bytes()
    with store_lock(shell.store):
        for name in (source, source.with_name("none.jsonl")):
            assert shell.run(name, "--metrics-textfile", prom).code in (1, 2)
    assert before == (prom.read_bytes(), status_path(shell.store).read_bytes())


def test_a_file_of_somebody_else_stays(shell: Shell, source: Path, prom: Path) -> None:
    prom.write_text("mine\n")
    missing = source.with_name("none.jsonl")
    assert shell.run(missing, "--metrics-textfile", prom).code == 2
    assert prom.read_text() == "mine\n"
