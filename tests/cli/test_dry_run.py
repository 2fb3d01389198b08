"""What `--dry-run` foretells is what a run does, and no model hears of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.judge import JudgeServer
from tests.cli.conftest import Shell
from tests.cli.running import Row, batchrank, requests, written


@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--window-size", "5"],  # two levels of merges
        ["--winners", "1", "--merge-passes", "forward,reverse"],
        ["--passes", "forward,reverse,shuffle:3", "--answer", "full"],
        ["--strategy", "sliding", "--stride", "3", "--depth", "20", "--limit", "2"],
        ["--top-k", "2", "--max-doc-tokens", "10", "--template", "direct-zh"],
    ],
)
def test_it_foretells_windows_and_calls(
    tmp_path: Path, shell: Shell, server: JudgeServer, flags: list[str]
) -> None:
    rows = requests(queries=3, candidates=26)
    again = {**rows[0], "query": {"qid": "twin", "text": rows[0]["query"]["text"]}}
    other = {**rows[0], "query": {"qid": "q2", "text": "something else"}}
    few: Row = {**rows[2], "query": {"qid": "few", "text": "few"}, "candidates": []}
    source = written(tmp_path / "in.jsonl", [*rows, again, rows[1], other, few, b"{torn"])
    size = [] if "--window-size" in flags else ["--window-size", "6"]

    told = batchrank("run", source, *size, *flags, "--dry-run", "--json")
    assert told.code == 0, told.err
    assert server.stats()["served"] == {}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl"]

    done = batchrank(
        *("run", source, "--store", shell.store, "--base-url", server.url),
        *(*size, *flags, "--max-failed", "1", "--json"),
    )
    assert done.code == 0, done.err
    windows = done.json["windows"]
    assert told.json["windows"] == windows["ok"]
    assert windows["repaired"] == windows["fallback"] == windows["error"] == 0
    assert told.json["calls"] == done.json["calls"]
    assert told.json["failed"] == done.json["queries"].get("failed", 0)
    assert told.json["queries"] == sum(done.json["queries"].values()) - told.json["failed"]


def test_it_reads_well(source: Path) -> None:
    told = batchrank("run", source, "--dry-run", "--window-size", "6")
    assert told.code == 0
    lines = [line.split() for line in told.out.decode().splitlines()]
    assert lines[0] == ["queries", "3"]
    assert lines[1] == ["windows", "9"]
    assert lines[2] == ["calls", "9"]
    assert "no model was asked" in told.out.decode()
    assert told.err == ""


def test_it_refuses_what_a_run_would_refuse(source: Path, tmp_path: Path) -> None:
    assert batchrank("run", source, "--dry-run", "--depth", "0").code == 2
    assert batchrank("run", tmp_path / "absent.jsonl", "--dry-run").code == 2


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ((), None),
        # The server is as the store knows it.
        (("--depth", "5"), "this is another job (it differs in stages), which asks for all of it"),
        (("--thinking", "on"), "this is another job (it differs in thinking)"),
        # It does not know this one, or not by this question.
        (("--model", "another"), "this is another job (it differs in model)"),
        (("--answer", "full"), "this is another job (it differs in stages)"),
        (("--backend", "openai"), "with another model there this is another job"),
    ],
)
def test_it_warns_of_another_job_s_rankings_as_a_run_does(
    shell: Shell, source: Path, flags: tuple[str, ...], told: str | None
) -> None:
    assert "this store holds" not in shell.run(source, "--dry-run").err
    assert shell.run(source).code == 0
    for as_json in ((), ("--json",)):
        seen = shell.run(source, *flags, "--dry-run", *as_json)
        assert seen.code == 0, seen.err
        if told is None:
            assert seen.err == ""
        else:
            assert "warning: this store holds 3 rankings of this input by judge; " in seen.err
            assert told in seen.err
    assert (seen.json["warning"] is None) == (told is None)
    if flags != ("--model", "another"):  # which no server has
        done = shell.run(source, *flags)
        assert done.code == 0, done.err
        is_another = told is not None and told.startswith("this is")
        assert ("this store holds 3 rankings" in done.err) == is_another


def test_it_warns_that_an_incremental_job_builds_on_none_of_another_s_rankings(
    shell: Shell, source: Path, tmp_path: Path
) -> None:
    assert shell.run(source).code == 0
    tonight = tmp_path / "tonight.jsonl"
    tonight.write_bytes(source.read_bytes())
    told = "warning: this store holds 3 rankings of another input by judge; this is another job"
    assert told not in shell.run(tonight, "--depth", "5", "--dry-run").err
    for dry in (("--dry-run",), ()):
        seen = shell.run(tonight, "--incremental", *dry)
        assert seen.code == 0, seen.err
        assert told in seen.err
        assert "which builds on none of them" in seen.err
    assert told not in shell.run(source, "--incremental").err, "the job is known by now"
