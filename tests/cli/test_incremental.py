"""Incremental nights: only what changed is asked, and the output says where."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scripts.judge import JudgeServer
from tests.cli.conftest import Shell
from tests.cli.running import Row, gain, requests, written

Night = Callable[..., dict[str, Any]]


@pytest.fixture
def rows() -> list[Row]:
    return requests(queries=3, candidates=14)


@pytest.fixture
def night(shell: Shell, tmp_path: Path) -> Night:
    """Runs a night over rows; its summary."""

    def run(rows: list[Row], *flags: str) -> dict[str, Any]:
        source = written(tmp_path / "night.jsonl", rows)
        ended = shell.run(source, "--incremental", "--json", *flags)
        assert ended.code == 0, ended.err
        found: dict[str, Any] = ended.json
        return found

    return run


def with_candidates(row: Row, keep: slice) -> Row:
    """The same query with some of its candidates."""
    return {**row, "candidates": row["candidates"][keep]}


def output(tmp_path: Path) -> list[Row]:
    """The rows of the last night."""
    lines = (tmp_path / "night.ranked.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_a_night_asks_only_for_what_changed(
    night: Night, shell: Shell, rows: list[Row], tmp_path: Path
) -> None:
    first = night([with_candidates(row, slice(0, 13)) for row in rows])
    assert first["incremental"] == 0
    before = output(tmp_path)

    second = night([with_candidates(rows[0], slice(0, 14)), with_candidates(rows[1], slice(0, 13))])

    assert (second["calls"], second["incremental"], second["already_finished"]) == (1, 1, 1)
    changed, unchanged = output(tmp_path)
    assert changed["incremental"] is True
    assert len(changed["ranking"]) == 14
    assert "incremental" not in unchanged
    assert unchanged == before[1]
    (seen,) = shell.look("inspect", rows[0]["query"]["qid"], "--json").json[0]["asked"]
    assert len(seen["window"]["shown"]) == 6
    told = shell.look("inspect", rows[0]["query"]["qid"]).out.decode()
    assert "builds on the ranking of run 1; ranked in full 20" in told


@pytest.mark.parametrize(
    ("flags", "promised"),
    [
        ("segmented --merge-passes adaptive:2 --top-k 3", 2),
        ("segmented --passes forward,reverse --answer full", 2),
        ("sliding --stride 2 --top-k 12", 4),
        ("topdown --winners 3", 3),
        ("tournament --answer logprobs", 2),
        ("setwise --winners 4", 4),
    ],
)
def test_every_strategy_merges_what_is_new_and_is_replayed(
    night: Night, shell: Shell, rows: list[Row], tmp_path: Path, flags: str, promised: int
) -> None:
    for count in (13, 14):
        found = night(
            [with_candidates(row, slice(0, count)) for row in rows], "--strategy", *flags.split()
        )

    assert found["incremental"] == 3
    for row, written_row in zip(rows, output(tmp_path), strict=True):
        qid = row["query"]["qid"]
        docids = sorted((one["docid"] for one in row["candidates"]), key=lambda d: -gain(qid, d))
        ranked = [place["docid"] for place in written_row["ranking"]]
        assert ranked[:promised] == docids[:promised]
        asked = shell.look("inspect", qid, "--json").json[0]["asked"]
        assert len(asked) == sum(written_row["windows"].values())
        assert {one["permutation"]["status"] for one in asked} == {"ok"}


def test_lost_candidates_need_no_server(
    night: Night, server: JudgeServer, rows: list[Row], tmp_path: Path
) -> None:
    night(rows)
    before = {row["qid"]: [place["docid"] for place in row["ranking"]] for row in output(tmp_path)}
    calls = len(server.calls)

    found = night([with_candidates(row, slice(3, None)) for row in rows])

    assert (found["calls"], found["incremental"]) == (0, 3)
    assert len(server.calls) == calls
    for row in output(tmp_path):
        docids = [place["docid"] for place in row["ranking"]]
        assert docids == [docid for docid in before[row["qid"]] if docid in docids]
        assert row["status"] == "ok"


def test_without_the_flag_it_is_another_job(
    shell: Shell, night: Night, rows: list[Row], tmp_path: Path
) -> None:
    night(rows)
    source = written(
        tmp_path / "night.jsonl", [with_candidates(row, slice(1, None)) for row in rows]
    )

    ended = shell.run(source, "--json")

    assert ended.json["incremental"] == 0
    assert ended.json["calls"] > 0
