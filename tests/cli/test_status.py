"""`batchrank status`, `inspect` and `export` show what a store holds, and never a raw escape."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from scripts.judge import JudgeServer
from tests.cli.conftest import Shell
from tests.cli.running import (
    Result,
    Row,
    docids,
    judge,
    requests,
    rows_of,
    serving,
    windows,
    written,
)
from tests.replay_server import ReplayServer

ESCAPES = re.compile(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]")
"""Control characters but line feeds, and the overrides that turn a line's direction."""


@pytest.fixture
def done(source: Path, shell: Shell) -> Shell:
    """A shell with one finished run."""
    ended = shell.run(source)
    assert ended.code == 0, ended.err
    return shell


def _text(result: Result) -> str:
    assert result.code == 0, result.err
    assert result.err == ""
    return result.out.decode()


def test_status_of_a_finished_run(done: Shell, source: Path) -> None:
    text = _text(done.look("status"))
    assert text.startswith(f"run 1 of {source}, begun ")
    assert "complete (exit 0)" in text
    assert "model judge, template direct-en@1" in text
    assert "3 queries: 3 ok" in text
    assert "9 windows: 9 ok" in text

    found = done.look("status", "--json").json
    assert (found["id"], found["exit"], found["queries"]) == (1, 0, {"ok": 3})
    assert found["summary"]["calls"] == 9
    assert found["settings"]["identity"]


def test_status_of_each_run_and_of_none(done: Shell, source: Path, rows: list[Row]) -> None:
    written(source, [*rows, b"{torn"])
    assert done.run(source).code == 3
    text = _text(done.look("status"))
    assert "run 2 of" in text
    assert "rejected by a gate (exit 3)" in text
    assert "1 of 4 queries (25.0%) failed" in text
    assert "complete (exit 0)" in _text(done.look("status", "--run", "1"))
    absent = done.look("status", "--run", "7")
    assert absent.code == 2
    assert "holds no run 7" in absent.err


@pytest.mark.parametrize("command", ["status", "export", "inspect"])
def test_a_store_that_is_not_there_is_not_made(tmp_path: Path, command: str) -> None:
    shell = Shell(tmp_path, "")
    ended = shell.look(command, *(["q1"] if command == "inspect" else []))
    assert ended.code == 2
    assert "there is no store at" in ended.err
    assert list(tmp_path.iterdir()) == []


def test_inspect_shows_where_documents_came_from(done: Shell, tmp_path: Path) -> None:
    row = rows_of(tmp_path / "in.ranked.jsonl")[1]
    text = _text(done.look("inspect", "q2", "--top-k", "5"))
    for place in row["ranking"][:5]:
        line = f"{place['rank']:>5} (was {place['first_stage_rank']:>3})  {place['docid']}"
        assert line in text
    assert "and 7 more" in text
    assert text.count("\nwindow ") == 3
    assert "window 1, round 1: ok" in text
    assert "window 3, round 2: ok" in text
    assert "[1] q2-d1, [2] q2-d3, [3] q2-d5" in text  # dealt round-robin
    assert re.search(r"answer  '\[?\d", text)

    found = done.look("inspect", "q2", "--json").json[0]
    assert (found["qid"], found["line"]) == ("q2", 2)
    assert docids(found) == docids(row)
    assert [asked["round"] for asked in found["asked"]] == [0, 0, 1]
    shown = [sorted(asked["window"]["shown"]) for asked in found["asked"]]
    assert sorted(shown[0] + shown[1]) == sorted(docids(row))
    for asked in found["asked"]:
        assert asked["answer"]["text"]
        assert sorted(asked["permutation"]["order"]) == sorted(asked["window"]["prior"])


@pytest.mark.parametrize("constraints", [None, frozenset()])
def test_windows_are_shown_as_the_run_counted_them(
    tmp_path: Path, constraints: frozenset[str] | None
) -> None:
    """However their answers went wrong, and whatever a second request brought."""
    rows = requests(queries=40, candidates=12)
    source = written(tmp_path / "in.jsonl", rows)
    spoiled = judge(rows, constraints=constraints, malformed_rate=0.6, sound_trials=True)
    with serving(spoiled) as server:
        shell = Shell(tmp_path, server.url)
        assert shell.run(source, "--max-fallback", "1").code == 0
    seen, notes = Counter[str](), Counter[str]()
    for row in rows_of(tmp_path / "in.ranked.jsonl"):
        asked = shell.look("inspect", row["qid"], "--json").json[0]["asked"]
        told = Counter(window["permutation"]["status"] for window in asked)
        assert +Counter(row["windows"]) == told, row["qid"]
        seen += told
        notes.update(note for window in asked for note in window["permutation"]["notes"])
    assert min(seen["ok"], seen["repaired"], seen["fallback"], notes["asked-again"]) > 0


def test_inspect_of_an_unknown_query(done: Shell) -> None:
    absent = done.look("inspect", "q9")
    assert absent.code == 2
    assert "has no query 'q9'\n" in absent.err
    assert "has no query 'q1.'; did you mean 'q1'?" in done.look("inspect", "q1.").err
    for given in ([], ["q1", "--line", "1"]):
        neither = done.look("inspect", *given)
        assert neither.code == 2
        assert "by its QID, or by --line N" in neither.err


def test_inspect_finds_a_line_that_has_no_qid(done: Shell, source: Path, rows: list[Row]) -> None:
    written(source, [*rows, b"{torn"])
    assert done.run(source).code == 3
    text = _text(done.look("inspect", "--line", "4"))
    assert text.startswith(
        "no qid: no query\nline 4, failed, model judge\njson: The line is not JSON"
    )
    assert done.look("inspect", "--line", "2", "--json").json[0]["qid"] == "q2"
    absent = done.look("inspect", "--line", "5")
    assert absent.code == 2
    assert "has no ranking of line 5" in absent.err


def test_inspect_has_each_line_with_a_qid_in_one_value(
    shell: Shell, rows: list[Row], tmp_path: Path
) -> None:
    other = {**rows[0], "query": {**rows[0]["query"], "text": "another text"}}
    source = written(tmp_path / "in.jsonl", [rows[0], rows[1], other])
    assert shell.run(source, "--max-failed", "1").code in (0, 3)
    for flags, lines in (["q1"], [1, 3]), (["--line", "2"], [2]):
        found = shell.look("inspect", *flags, "--json").json
        assert [one["line"] for one in found] == lines


def test_an_identifier_takes_one_line_whatever_it_holds(
    shell: Shell, rows: list[Row], tmp_path: Path
) -> None:
    row = rows[0]
    row["query"] = {"qid": "q\n1\t", "text": "who\ntends"}
    row["candidates"][0]["docid"] = "d\n1\t"
    source = written(tmp_path / "odd.jsonl", [row])
    with serving(judge([row])) as server:
        assert Shell(tmp_path, server.url).run(source).code == 0
    text = _text(shell.look("inspect", "q\n1\t"))
    assert text.startswith("q\\n1\\t: who\\ntends\nline 1, ok")
    assert ")  d\\n1\\t\n" in text
    assert "[1] d\\n1\\t, " in text


def test_nothing_a_user_or_a_model_wrote_reaches_the_terminal_raw(tmp_path: Path) -> None:
    bad = "\x1b[31mred\x1b]0;title\x07\x9b2J\u202ex"
    docs = [f"{bad}-{place}" for place in range(3)]
    row = {
        "query": {"qid": bad, "text": f"what is {bad}"},
        "candidates": [
            {"docid": docid, "doc": {"text": f"t{place}"}} for place, docid in enumerate(docs)
        ],
    }
    source = written(tmp_path / "\x1b[32min.jsonl", [row, b'{"query": {"qid": "\x1b[1m'])
    said = []
    for number, answer in enumerate((f"{bad} [2] > [1] > [3]", f"all {bad} passages")):
        recorded = [{"qid": "q", "docids": ["t0", "t1", "t2"], "response": answer}]
        with serving(ReplayServer(recorded, by="window")) as server:
            folder = tmp_path / str(number)
            folder.mkdir()
            shell = Shell(folder, server.url)
            said.append(shell.run(source, "--no-re-ask"))
            assert server.missed == 0
        said += [shell.look("inspect", bad), shell.look("status")]
        said.append(shell.look("inspect", f"{bad} absent"))
    assert [result.code for result in said] == [3, 0, 0, 2, 3, 0, 0, 2]
    for result in said:
        assert ESCAPES.search(result.out) is None, result.out
        assert ESCAPES.search(result.err.encode()) is None, result.err
    assert "\\x1b[31mred" in said[1].out.decode()
    assert "    1 (was   2)" in said[1].out.decode()
    assert "): 'all \\x1b[31mred" in said[4].err
    assert "fallback" in said[5].out.decode()


def test_export_writes_what_the_run_wrote(done: Shell, tmp_path: Path) -> None:
    expected = (tmp_path / "in.ranked.jsonl").read_bytes()
    assert done.look("export").out == expected
    copy = tmp_path / "copy.jsonl"
    assert done.look("export", "-o", copy).code == 0
    assert copy.read_bytes() == expected

    trec = done.look("export", "--output-format", "trec", "--top-k", "2")
    lines = [line.split() for line in trec.out.decode().splitlines()]
    assert [columns[0] for columns in lines] == ["q1", "q1", "q2", "q2", "q3", "q3"]
    assert [columns[2] for columns in lines] == [
        docid for row in rows_of(expected) for docid in docids(row)[:2]
    ]
    assert done.look("export", "--output-format", "xls").code == 2


def test_export_of_an_earlier_run_and_of_a_rejected_one(
    done: Shell, source: Path, rows: list[Row], tmp_path: Path, server: JudgeServer
) -> None:
    first = (tmp_path / "in.ranked.jsonl").read_bytes()
    written(source, [*rows[1:], b"{torn"])
    assert done.run(source).code == 3
    assert done.look("export", "--run", "1").out == first
    rejected = (tmp_path / "in.ranked.jsonl.rejected").read_bytes()
    assert done.look("export").out == rejected
    assert [row["qid"] for row in rows_of(rejected)] == ["q2", "q3", None]
    assert len(windows(server)) == 9
