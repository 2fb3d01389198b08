"""Answers without a ranking leave the first stage's order, and never pass for a result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scripts.judge import JudgeServer
from tests.cli.conftest import Shell
from tests.cli.running import (
    Row,
    batchrank,
    docids,
    judge,
    requests,
    rows_of,
    serving,
    windows,
    written,
)

PASSES = [
    ["--passes", "reverse"],
    ["--passes", "forward,reverse,shuffle:3"],
    ["--passes", "shuffle:1", "--merge-passes", "reverse,shuffle:2"],
    ["--strategy", "sliding", "--stride", "3", "--passes", "reverse,shuffle:9"],
]


def _spoiled(rows: list[Row], **settings: Any) -> JudgeServer:
    """A server all of whose answers are unusable, but for those of the preflight's trial."""
    settings |= {"malformed_rate": 1.0, "malformed": ("prose", "empty", "think")}
    return judge(rows, constraints=frozenset(), sound_trials=True, **settings)


@pytest.mark.parametrize("flags", PASSES)
def test_whatever_the_presentation_the_first_stage_stands(tmp_path: Path, flags: list[str]) -> None:
    rows = requests(queries=2, candidates=26)
    source = written(tmp_path / "in.jsonl", rows)
    output = tmp_path / "out.jsonl"
    with serving(_spoiled(rows)) as server:
        shell = Shell(tmp_path, server.url)
        rejected = shell.run(source, "-o", output, *flags)
        assert rejected.code == 3, rejected.err
        assert not output.exists()
        assert "brought no usable ranking" in rejected.err
        assert "for example query" in rejected.err
        ended = shell.run(source, "-o", output, *flags, "--max-fallback", "1")
    assert ended.code == 0, ended.err
    found = rows_of(output)
    for given, row in zip(rows, found, strict=True):
        assert docids(row) == [candidate["docid"] for candidate in given["candidates"]]
        assert row["status"] == "degraded"
        assert row["windows"]["fallback"] == sum(row["windows"].values()) > 0


def test_a_hopeless_run_stops_early(tmp_path: Path) -> None:
    rows = requests(queries=60, candidates=12)
    source = written(tmp_path / "in.jsonl", rows)
    output = tmp_path / "out.jsonl"
    output.write_text("yesterday\n")
    with serving(_spoiled(rows, call_seconds=0.02)) as server:
        ended = Shell(tmp_path, server.url).run(source, "-o", output, "--concurrency", "2")
        asked = len(windows(server))
    assert ended.code == 3, ended.err
    assert "stopped, since the rest of the night would be no better" in ended.err
    assert ended.err.count("for example query") == 3
    assert 50 <= asked < 180
    assert output.read_text() == "yesterday\n"


def test_a_model_that_repeats_the_prompts_order_is_noticed(tmp_path: Path) -> None:
    rows = requests(queries=7, candidates=12)
    source = written(tmp_path / "in.jsonl", rows)
    # A bias that drowns every gain: the first of a prompt is best, the second next.
    with serving(judge(rows, bias="first", bias_strength=1000.0)) as server:
        ended = Shell(tmp_path, server.url).run(source)
    assert ended.code == 0, ended.err
    assert "21 of 21 answers only repeat the order of the prompt (100%, by chance" in ended.err
    few = written(tmp_path / "few.jsonl", rows[:3])
    with serving(judge(rows, bias="first", bias_strength=1000.0)) as server:
        assert "only repeat" not in Shell(tmp_path, server.url).run(few).err


def test_pairs_repeat_their_order_half_the_time_by_chance(tmp_path: Path) -> None:
    rows = requests(queries=6, candidates=6)
    source = written(tmp_path / "in.jsonl", rows)
    flags = ("--strategy", "pairwise", "--depth", "6", "--store", tmp_path / "store")
    with serving(judge(rows)) as server:
        ended = batchrank("run", source, *flags, "--base-url", server.url)
    assert ended.code == 0, ended.err
    assert "only repeat" not in ended.err


def test_a_model_that_only_echoes_ranks_no_better_than_its_prompts(tmp_path: Path) -> None:
    rows = requests(queries=3, candidates=12)
    source = written(tmp_path / "in.jsonl", rows)
    with serving(judge(rows, bias="first", bias_strength=1000.0)) as server:
        ended = Shell(tmp_path, server.url).run(source)
    assert "no better than chance" not in ended.err


def test_half_named_answers_count_against_the_gate(tmp_path: Path) -> None:
    rows = requests(queries=3, candidates=12)
    source = written(tmp_path / "in.jsonl", rows)
    thin = judge(rows, constraints=frozenset(), malformed_rate=1.0, malformed=("repeats",))
    with serving(thin) as server:
        ended = Shell(tmp_path, server.url).run(source, "--answer", "full")
    assert ended.code == 3, ended.err
    assert "9 naming less than half of what was wanted" in ended.err
