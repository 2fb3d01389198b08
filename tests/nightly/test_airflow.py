"""The Airflow task in the docs treats exit codes as README describes them, and can be cleared."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from scripts.judge import JudgeServer
from tests.cli.running import judge, requests, serving, windows, written
from tests.conftest import ROOT
from tests.publishing.reading import docids_at

BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
ROWS = requests(queries=3, candidates=6)


class AirflowError(Exception):
    """As Airflow: the task is tried again."""


class FailError(AirflowError):
    """The task has failed for good."""


class SkipError(AirflowError):
    """The task counts as skipped."""


@pytest.fixture
def night(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """The task of the docs, run as Airflow runs it; Airflow itself is 150 packages."""
    tasks: list[Callable[..., None]] = []
    errors, sdk = ModuleType("airflow.exceptions"), ModuleType("airflow.sdk")
    names = {"AirflowException": AirflowError, "AirflowFailException": FailError}
    vars(errors).update(names, AirflowSkipException=SkipError)

    def task(**_: object) -> Callable[[Callable[..., None]], Callable[[], None]]:
        def decorate(function: Callable[..., None]) -> Callable[[], None]:
            tasks.append(function)
            return lambda: None

        return decorate

    vars(sdk).update(dag=lambda **_: lambda function: function, task=task)
    for name, module in (("airflow", ModuleType("airflow")), (errors.__name__, errors)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, sdk.__name__, sdk)
    (code,) = BLOCK.findall((ROOT / "docs" / "scheduling.md").read_text())
    exec(compile(code, "docs/scheduling.md", "exec"), {})
    return lambda: tasks[0](ds="2026-03-04")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs in this folder what the task runs in /srv/batchrank."""
    run = subprocess.run

    def in_this_folder(command: list[str], **how: Any) -> Any:
        program, *arguments = command
        assert (program, how) == ("/srv/batchrank/.venv/bin/batchrank", {"cwd": "/srv/batchrank"})
        return run([sys.executable, "-m", "batchrank", *arguments], cwd=tmp_path, check=False)

    monkeypatch.setattr(subprocess, "run", in_this_folder)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return tmp_path


@pytest.mark.parametrize(
    ("code", "raised"),
    [(1, AirflowError), (2, FailError), (3, FailError), (4, AirflowError), (75, SkipError)],
)
def test_exit_codes_are_understood(
    night: Callable[[], None], monkeypatch: pytest.MonkeyPatch, code: int, raised: type[Exception]
) -> None:
    ended = subprocess.CompletedProcess[bytes]([], code)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: ended)
    with pytest.raises(AirflowError) as found:
        night()
    assert type(found.value) is raised


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with serving(judge(ROWS)) as running:
        yield running


def test_a_cleared_task_publishes_what_could_not_be(
    night: Callable[[], None], here: Path, server: JudgeServer
) -> None:
    spec = f"""
        input = "log-{{date}}.jsonl"
        base_url = "{server.url}"
        [publish]
        target = "sqlite:cache.sqlite"
        replace = true
        """
    job = here / "nightly.toml"
    job.write_text(spec)
    written(here / "log-2026-03-04.jsonl", ROWS)
    night()
    written(here / "log-2026-03-04.jsonl", ROWS[:1])
    with pytest.raises(AirflowError):
        night()
    asked = len(windows(server))
    job.write_text(f"{spec}min_coverage = 0\n")
    night()
    assert len(docids_at(f"sqlite:{here}/cache.sqlite")) == 1
    assert len(windows(server)) == asked
