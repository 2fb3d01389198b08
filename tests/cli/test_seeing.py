"""What happened can be seen: structured logs, reasons in `status`, and a second try on request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from batchrank.cli.talk import Talk
from batchrank.logs import json_logs
from scripts.judge import JudgeServer
from tests.cli.conftest import Shell
from tests.cli.running import Row, judge, rows_of, serving, windows, written


def spoiled(rows: list[Row], rate: float, **settings: Any) -> JudgeServer:
    """A server that writes prose in place of so many of its answers, not in the trial."""
    settings |= {"malformed_rate": rate, "malformed": ("prose",), "sound_trials": True}
    return judge(rows, constraints=frozenset(), **settings)


def test_structured_logs_say_what_each_line_is_about(tmp_path: Path, rows: list[Row]) -> None:
    source = written(tmp_path / "in.jsonl", rows)
    with serving(spoiled(rows, 1.0)) as server:
        ended = Shell(tmp_path, server.url).run(source, "--log-format", "json", "--no-re-ask")
    assert ended.code == 3
    lines = [orjson.loads(line) for line in ended.err.splitlines()]
    assert all({"time", "level", "event", "source"} <= line.keys() for line in lines)
    assert all("\x1b" not in line["event"] for line in lines)
    fallbacks = [line for line in lines if line.get("qid")]
    assert len(fallbacks) == 9
    assert {line["qid"] for line in fallbacks} == {"q1", "q2", "q3"}
    assert {line["window"] for line in fallbacks} == {1, 2, 3}
    assert {line["level"] for line in fallbacks} == {"warning"}
    assert len({line["job"] for line in fallbacks}) == 1
    assert {line["run"] for line in fallbacks} == {1}
    assert all(line["reason"] and line["answer"] for line in fallbacks)
    (rejected,) = [line for line in lines if "rejected: 9 of 9 windows" in line["event"]]
    assert rejected["level"] == "error"


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("  rejected: 9 of 9 windows", "error"),
        ("  stopped: the time is up", "warning"),
        ("  warning: the server counts no tokens", "warning"),
        ("warning: http://gpu1 is left alone", "warning"),
        ("publish: failed: redis://127.0.0.1:6379/0 can't be reached", "error"),
        ("report: not begun: stopped by SIGTERM", "warning"),
        ("publish: generation 3 of sqlite:cache.sqlite: 9 entries", "info"),
        ("  written to out.jsonl", "info"),
        ("no warning: nothing", "info"),
    ],
)
def test_how_a_sentence_begins_is_its_level(
    text: str, level: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with json_logs(), Talk(logged=True) as talk:
        talk.say(text)
    line = orjson.loads(capsys.readouterr().err)
    assert (line["level"], line["event"]) == (level, text.strip())


def test_an_error_is_a_structured_line_too(tmp_path: Path, source: Path) -> None:
    ended = Shell(tmp_path, "http://127.0.0.1:1").run(source, "--log-format", "json")
    assert ended.code == 4
    last = orjson.loads(ended.err.splitlines()[-1])
    assert last["level"] == "error"
    assert last["reason"] == "NoServerError"
    assert "127.0.0.1:1" in last["event"]


def test_status_counts_reasons_and_shows_examples(tmp_path: Path, rows: list[Row]) -> None:
    lines: list[Row | bytes] = [*rows, b"{torn", b"{torn too", {**rows[0], "weight": 2}]
    source = written(tmp_path / "in.jsonl", lines)
    with serving(spoiled(rows, 1.0)) as server:
        shell = Shell(tmp_path, server.url)
        assert shell.run(source, "--no-re-ask").code == 3
        assert "--retry-fallbacks" in shell.look("status").out.decode()
    said = shell.look("status").out.decode()
    assert "failed, json: 2\n  line 4: " in said
    assert "failed, duplicate: 1\n  line 6: " in said
    assert "no ranking, fallback (" in said
    assert "): 9\n  q1, window 1: '" in said
    found = shell.look("status", "--json").json
    assert [cause["count"] for cause in found["failures"]] == [2, 1]
    assert found["fallbacks"][0]["count"] == 9
    assert len(found["fallbacks"][0]["examples"]) == 3


def test_a_rejection_for_failed_lines_shows_three(tmp_path: Path, rows: list[Row]) -> None:
    lines: list[Row | bytes] = [*rows, b"{torn", b"{torn too", b"{and torn", rows[0] | {"n": 1}]
    source = written(tmp_path / "in.jsonl", lines)
    with serving(judge(rows)) as server:
        shell = Shell(tmp_path, server.url)
        ended = shell.run(source)
    assert ended.code == 3
    summary = orjson.loads((tmp_path / "in.ranked.jsonl.summary.json").read_bytes())
    assert [example[:8] for example in summary["examples"]] == ["line 4: ", "line 7: ", "line 5: "]
    looked = shell.look("status").out.decode()
    for example in summary["examples"]:
        assert f"for example {example}" in ended.err
        assert f"for example {example}" in looked
    assert "--retry-fallbacks" not in looked


def test_status_shows_what_any_gate_showed(tmp_path: Path, rows: list[Row]) -> None:
    source = written(tmp_path / "in.jsonl", rows)
    qrels = tmp_path / "qrels"
    first = [f"{row['query']['qid']} 0 {row['candidates'][0]['docid']} 1\n" for row in rows]
    qrels.write_text("".join(first))
    with serving(judge(rows)) as server:
        shell = Shell(tmp_path, server.url)
        ended = shell.run(source, "--gate-qrels", qrels, "--json")
    assert ended.code == 3, ended.err
    assert len(ended.json["examples"]) == 3
    looked = shell.look("status").out.decode()
    assert all(f"for example {example}\n" in looked for example in ended.json["examples"])


def test_fallbacks_are_asked_again_on_request_and_nothing_else(
    tmp_path: Path, rows: list[Row]
) -> None:
    source = written(tmp_path / "in.jsonl", rows)
    open_gate = ("--max-fallback", "1", "--no-re-ask")
    with serving(spoiled(rows, 0.4, seed=3)) as server:
        shell = Shell(tmp_path, server.url)
        first = shell.run(source, *open_gate, "--json")
    assert first.code == 0, first.err
    fell = first.json["windows"]["fallback"]
    assert 0 < fell < 9
    degraded = {
        row["qid"] for row in rows_of(tmp_path / "in.ranked.jsonl") if row["status"] == "degraded"
    }
    port = int(server.url.rpartition(":")[2])
    with serving(judge(rows, constraints=frozenset(), port=port)) as server:
        # Only on request: by itself a run takes fallbacks for finished work.
        assert shell.run(source, *open_gate).code == 0
        assert windows(server) == []
        again = shell.run(source, *open_gate, "--retry-fallbacks", "--json")
        assert again.code == 0, again.err
        # The windows that fell back, and merges that now have other documents.
        assert fell <= again.json["calls"] <= fell + len(degraded)
        assert again.json["windows"]["fallback"] == 0
        assert again.json["already_finished"] == 3 - len(degraded)
        asked = len(windows(server))
        assert shell.run(source, *open_gate, "--retry-fallbacks").code == 0
        assert len(windows(server)) == asked
    assert {row["status"] for row in rows_of(tmp_path / "in.ranked.jsonl")} == {"ok"}


def test_failed_queries_are_tried_again_by_every_run(tmp_path: Path, rows: list[Row]) -> None:
    source = written(tmp_path / "in.jsonl", [*rows, b"{torn"])
    with serving(judge(rows)) as server:
        shell = Shell(tmp_path, server.url)
        assert shell.run(source, "--max-failed", "1").code == 0
        written(source, [*rows, {**rows[0], "qid": "mended", "query": "which garden is it"}])
        ended = shell.run(source, "--json")
    assert ended.code == 0, ended.err
    assert ended.json["already_finished"] == 3
    assert [row["status"] for row in rows_of(tmp_path / "in.ranked.jsonl")] == ["ok"] * 4
