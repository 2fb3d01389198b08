"""Before a night begins: how long it will take, what of it will be done, what would fit."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from scripts.judge import JudgeServer
from tests.cli.conftest import Shell
from tests.cli.running import Row, batchrank, requests, written


@pytest.fixture
def rows() -> list[Row]:
    """Ten queries of sixty candidates; the last weighs as much as all others together."""
    found = requests(queries=10, candidates=60)
    found[-1]["weight"] = 9
    return found


def dry(shell: Shell, source: Path, *flags: str, text: bool = False) -> str:
    found = shell.run(source, "--dry-run", *flags, *([] if text else ["--json"]))
    assert found.code == 0, found.err
    return found.out.decode()


def test_a_dry_run_tells_hours_by_the_pace_of_the_last_run(
    shell: Shell, source: Path, server: JudgeServer
) -> None:
    assert "`batchrank doctor FILE` measures" in dry(shell, source, text=True)
    assert shell.run(source, "--limit", "2").code == 0
    asked = len(server.calls)
    said = dry(shell, source, text=True)
    assert "at the pace of the last run in " in said
    assert "are left" not in said

    said = dry(shell, source, "--time-limit", "9h", text=True)
    assert "fits into the 9 h 0 min that are left" in said
    assert len(server.calls) == asked


def test_doctor_says_what_will_be_done_and_what_would_fit(
    source: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whatever is measured takes a second.
    clock = SimpleNamespace(perf_counter=count().__next__)
    monkeypatch.setattr("batchrank.planning.doctor.time", clock)
    base = ("doctor", source, "--base-url", shell.url, "--json")
    found = _doctor(*base)
    assert found["outlook"]["seconds_left"] is None
    # A third of the time is left: short of ten queries, and the heaviest goes first.
    seconds = found["hours"] * 3600 / 3
    found = _doctor(*base, "--time-limit", f"{seconds:.6f}s")
    outlook = found["outlook"]
    assert 0 < outlook["queries"] < 1
    assert outlook["weight"] >= 0.5
    for choice in outlook["fitting"]:
        assert choice["hours"] * 3600 <= seconds
        assert choice["hours"] < outlook["hours"]


def test_cheaper_settings_are_named_where_they_fit(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = written(tmp_path / "many.jsonl", requests(queries=6, candidates=100))
    assert shell.run(source, "--limit", "1").code == 0
    # A pace that is fixed, so that what fits is.
    monkeypatch.setattr("batchrank.cli.commands.dryrun.last_pace", _thousand_a_second)
    passes = ("--passes", "forward,reverse")
    tokens = int(dry(shell, source, *passes).split('"prompt_tokens": ')[1].split(",")[0])
    night = f"{tokens / 1000 * 0.6:.3f}s"
    said = dry(shell, source, *passes, "--time-limit", night, text=True)
    assert "are left: 50% of the queries will be done, 50% of their weight" in said
    assert "all would fit with --passes forward --merge-passes forward: about" in said
    assert "all would fit with --depth 50: about" in said
    assert "all would fit with --depth 20: about" in said


def test_what_the_store_has_done_counts_as_done(
    shell: Shell, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("batchrank.cli.commands.dryrun.last_pace", _thousand_a_second)
    whole = json.loads(dry(shell, source))
    assert shell.run(source, "--limit", "6").code == 0
    asked = json.loads(dry(shell, source))
    assert (whole["known"], asked["known"], asked["queries"]) == (0, 6, 10)
    assert asked["prompt_tokens"] == pytest.approx(0.4 * whole["prompt_tokens"], rel=0.1)
    fresh = json.loads(dry(shell, source, "--fresh"))
    assert (fresh["known"], fresh["calls"]) == (0, whole["calls"])

    # Time for half of what is left: of four queries the heavy one and another.
    night = ("--time-limit", f"{asked['prompt_tokens'] / 1000 * 0.6:.3f}s")
    outlook = json.loads(dry(shell, source, *night))["outlook"]
    assert (outlook["queries"], outlook["weight"]) == (0.8, pytest.approx(16 / 18))
    said = dry(shell, source, *night, text=True)
    assert "80% of the queries will be done, 89% of their weight" in said

    told = batchrank("doctor", source, "--window-size", "6", "--base-url", shell.url, "--json")
    assert told.json["forecast"]["known"] == 0
    told = shell.look("doctor", source, "--window-size", "6", "--base-url", shell.url, "--json")
    assert told.json["forecast"]["known"] == 6
    said = shell.look("doctor", source, "--window-size", "6", "--base-url", shell.url).out.decode()
    assert "10 queries, 6 of them ranked already, " in said


async def _thousand_a_second(_: object) -> float:
    return 1000.0


def _doctor(*arguments: object) -> dict[str, dict[str, float]]:
    found = batchrank(*arguments)
    assert found.code == 0, found.err
    told: dict[str, dict[str, float]] = found.json
    return told
