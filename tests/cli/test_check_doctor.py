"""`batchrank check` looks at an input without a model, `doctor` at a server before a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scripts.judge import JudgeServer
from tests.cli.running import Row, batchrank, judge, serving, windows, written


def test_check_says_what_is_in_a_sound_input(source: Path) -> None:
    said = batchrank("check", source)
    assert said.code == 0
    assert said.out.decode().startswith("3 queries in 3 lines, 0 repeated word for word, 0 failed")
    assert said.err == ""
    report = batchrank("check", source, "--json").json
    assert (report["lines"], report["queries"]) == (3, 3)


def test_check_names_the_lines_that_fail(rows: list[Row], tmp_path: Path) -> None:
    other = {**rows[1], "query": {"qid": "q1", "text": "\x1b[31mred"}}
    wrong = {"query": {"qid": "\x1b]0;title\x07", "text": "what"}, "candidates": [{"docid": "d"}]}
    source = written(tmp_path / "in.jsonl", [*rows, b"{torn", other, wrong, rows[0]])
    said = batchrank("check", source)
    assert said.code == 2
    text = said.out.decode()
    for expected in ("1 repeated word for word, 3 failed", "line 4", "line 5", "line 6", "line 1"):
        assert expected in text
    assert text.replace("\n", "").isprintable()
    assert batchrank("check", "-", stdin=source.read_bytes()).out == said.out
    assert batchrank("check", source, "--limit", "3").code == 0


def test_check_refuses_a_file_that_is_no_jsonl(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("qid,query,document\n1,a,b\n")
    said = batchrank("check", source)
    assert said.code == 2
    assert "one row a candidate" in said.err
    assert said.out == b""


def test_doctor_proves_and_measures(source: Path, server: JudgeServer, tmp_path: Path) -> None:
    found = batchrank("doctor", source, "--base-url", server.url, "--window-size", "6", "--json")
    assert found.code == 0, found.err
    report = found.json
    assert (report["url"], report["kind"], report["model"]) == (server.url, "vllm", "judge")
    assert (report["form"], report["context"], report["warnings"]) == ("regex", 8192, [])
    assert report["forecast"]["queries"] == 3
    assert report["forecast"]["windows"] == report["forecast"]["calls"] == 9
    assert report["prompt_tokens_per_second"] > 0
    assert report["completion_tokens_per_second"] > 0
    assert report["hours"] > 0

    said = batchrank("doctor", source, "--base-url", server.url, "--window-size", "6")
    assert said.code == 0
    for expected in ("3 queries, 9 calls", "regex, constrained", "all is well"):
        assert expected in said.out.decode()
    # It looks and keeps nothing.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl"]


@pytest.mark.parametrize(
    ("flags", "calls"),
    [
        (["--strategy", "sliding", "--stride", "3"], 9),
        (["--passes", "forward,reverse"], 18),
        (["--merge-passes", "forward,reverse"], 12),
        (["--depth", "6"], 3),
        (["--limit", "1"], 3),
        (["--answer", "full", "--winners", "1", "--top-k", "1"], 9),
    ],
)
def test_doctor_takes_every_flag_that_changes_what_a_job_takes(
    source: Path, server: JudgeServer, flags: list[str], calls: int
) -> None:
    given = (source, "--base-url", server.url, "--window-size", "6", "--json", *flags)
    found = batchrank("doctor", *given)
    assert found.code == 0, found.err
    assert found.json["forecast"]["calls"] == calls
    assert batchrank("doctor", *given, "-o", "out").code == 2


def test_doctor_says_where_a_context_is_not_disclosed(rows: list[Row]) -> None:
    with serving(judge(rows, kind="openai")) as server:
        said = batchrank("doctor", "--base-url", server.url).out.decode()
    assert "context     not disclosed\n" in said


def test_doctor_estimates_by_what_it_measured(source: Path, rows: list[Row]) -> None:
    with serving(judge(rows, call_seconds=0.05, slots=2)) as slow:
        flags = ("--base-url", slow.url, "--window-size", "6", "--concurrency", "2")
        found = batchrank("doctor", source, *flags, "--json")
    # Nine calls of 50 ms, two at a time, cannot take less.
    assert found.json["hours"] * 3600 > 0.8 * 9 * 0.05 / 2


@pytest.mark.parametrize(
    ("settings", "said", "verdict"),
    [
        (
            {"constraints": frozenset()},
            "the server does not constrain answers",
            "fit, but see the 1 warning above",
        ),
        (
            {"context": 1500},
            "documents are cut to 80 tokens and windows to",
            "fit, but see the 1 warning above",
        ),
        (
            {"constraints": frozenset(), "malformed_rate": 1.0, "malformed": ("prose",)},
            "4 of 4 trial answers can't be read, for example 'All 4 passages",
            "not fit: no answer of the trial can be read as a ranking: take an instruction-tuned "
            "model, or another answer or template; a max_fallback of 100% starts the job all the "
            "same",
        ),
    ],
)
def test_doctor_and_run_are_of_one_mind(
    source: Path, rows: list[Row], tmp_path: Path, settings: dict[str, Any], said: str, verdict: str
) -> None:
    with serving(judge(rows, **settings)) as server:
        at = ("--base-url", server.url)
        found = batchrank("doctor", *at)
        report = batchrank("doctor", *at, "--json")
        ended = batchrank("run", source, *at, "--store", tmp_path / "store")
    fit = verdict.startswith("fit")
    assert found.code == report.code == (0 if fit else 4), found.err
    assert report.json["readable"] is fit
    assert said in found.out.decode()
    assert found.out.decode().splitlines()[-1] == verdict
    assert said in ended.err
    assert ended.code == (0 if fit else 4)
    assert fit or verdict.removeprefix("not fit: ") in ended.err.splitlines()[-1]


def test_a_server_that_can_not_be_read_is_taken_on_request_and_else_tried_anew(
    source: Path, rows: list[Row], tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"constraints": frozenset(), "malformed": ("prose",)}
    run = ("run", source, "--store", tmp_path / "store", "--base-url")
    with serving(judge(rows, malformed_rate=1.0, **settings)) as server:
        allowed = ("--base-url", server.url, "--max-fallback", "100%")
        assert batchrank("doctor", *allowed).code == 0
        refused = batchrank(*run, server.url, "--fresh")
        assert (refused.code, len(windows(server))) == (4, 0)
        asked = batchrank(*run, *allowed[1:], "--limit", "1")
        assert asked.code == 0, asked.err
        # What a run on request has left behind lets no other one pass.
        assert batchrank(*run, server.url).code == 4
        port = int(server.url.rpartition(":")[2])
    with serving(judge(rows, port=port, constraints=frozenset())) as mended:
        ended = batchrank(*run, mended.url, "--max-fallback", "50%")
    assert ended.code == 0, ended.err


def test_doctor_fails_where_no_job_could_start(source: Path, rows: list[Row]) -> None:
    with serving(judge(rows, kind="llama.cpp", context=900)) as server:
        found = batchrank("doctor", source, "--base-url", server.url)
    assert found.code == 4
    assert "start the server with a larger context" in found.err
    assert found.out == b""
