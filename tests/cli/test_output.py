"""What `batchrank run` writes: every line its row, every candidate once, in every format."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import IO

import orjson
import pytest
import zstandard

from scripts.judge import JudgeServer
from tests.cli.conftest import Shell
from tests.cli.running import Row, docids, gain, rows_of, windows, written


def _request(qid: str, *texts: str) -> Row:
    return {
        "query": {"qid": qid, "text": f"what of {qid}"},
        "candidates": [
            {"docid": f"{qid}-{place}", "doc": {"text": text}} for place, text in enumerate(texts)
        ],
    }


def test_rows_hold_what_the_readme_says(
    source: Path, shell: Shell, rows: list[Row], tmp_path: Path
) -> None:
    assert shell.run(source).code == 0
    written_rows = rows_of(tmp_path / "in.ranked.jsonl")
    assert [row["qid"] for row in written_rows] == ["q1", "q2", "q3"]
    for given, row in zip(rows, written_rows, strict=True):
        candidates = [candidate["docid"] for candidate in given["candidates"]]
        assert list(row) == [
            *("qid", "query", "status", "ranking", "windows", "calls"),
            *("prompt_tokens", "completion_tokens", "model", "template"),
        ]
        assert row["query"] == given["query"]["text"]
        assert (row["status"], row["model"], row["template"]) == ("ok", "judge", "direct-en@1")
        assert row["windows"] == {"ok": 3, "repaired": 0, "fallback": 0, "error": 0}
        assert row["calls"] == 3
        assert row["prompt_tokens"] > row["completion_tokens"] > 0
        for rank, place in enumerate(row["ranking"], 1):
            first = candidates.index(place["docid"]) + 1
            assert place == {
                "docid": place["docid"],
                "rank": rank,
                "first_stage_rank": first,
                "score": 12 - rank + 1,
                "first_stage_score": 12.0 - first,
            }
        assert sorted(docids(row)) == sorted(candidates)
        # The best two of each segment meet in the merge, so the judge's two best stand first.
        best = sorted(candidates, key=lambda docid: -gain(row["qid"], docid))
        assert docids(row)[:2] == best[:2]


def test_every_line_has_its_row(shell: Shell, rows: list[Row], tmp_path: Path) -> None:
    other = {**rows[1], "query": {"qid": "q1", "text": "another question"}}
    twice = {**rows[2], "candidates": [*rows[2]["candidates"], rows[2]["candidates"][0]]}
    lines: list[Row | bytes] = [
        rows[0],
        b'{"query": {"qid": "torn"',
        b"",
        other,
        rows[0],
        _request("alone", "one text"),
        _request("none"),
        _request("silent", "", "  "),
        {"query": {"qid": "shapeless", "text": "what"}, "results": []},
        twice,
        b"\xff\xfe",
    ]
    source = written(tmp_path / "in.jsonl", lines)
    ended = shell.run(source, "--max-failed", "1")
    assert ended.code == 0, ended.err
    assert "a docid stands twice" in ended.err
    found = rows_of(tmp_path / "in.ranked.jsonl")
    assert [(row["qid"], row["status"]) for row in found] == [
        ("q1", "ok"),
        ("torn", "failed"),
        ("q1", "failed"),
        ("q1", "ok"),
        ("alone", "unranked"),
        ("none", "unranked"),
        ("silent", "unranked"),
        ("shapeless", "failed"),
        ("q3", "ok"),
        (None, "failed"),
    ]
    errors = [row["error"] for row in found if row["status"] == "failed"]
    assert [(error["kind"], error["line"]) for error in errors] == [
        ("json", 2),
        ("duplicate", 4),
        ("shape", 9),
        ("encoding", 11),
    ]
    assert "line 4" in errors[1]["message"]
    assert "line 1" in errors[1]["message"]
    # A failed query keeps its first stage where that is known.
    assert docids(found[2]) == [candidate["docid"] for candidate in rows[1]["candidates"]]
    assert found[3] == found[0]
    assert docids(found[6]) == ["silent-0", "silent-1"]
    assert sorted(docids(found[8])) == sorted(c["docid"] for c in rows[2]["candidates"])


def test_depth_and_top_k_cut_without_changing_scores(
    source: Path, shell: Shell, tmp_path: Path, server: JudgeServer
) -> None:
    whole, cut, deep = (tmp_path / name for name in ("whole", "cut", "deep"))
    full = ("--answer", "full")
    assert shell.run(source, "-o", whole, *full).code == 0
    assert shell.run(source, "-o", cut, *full, "--top-k", "3").code == 0
    for all_of_it, row in zip(rows_of(whole), rows_of(cut), strict=True):
        assert row == {**all_of_it, "ranking": all_of_it["ranking"][:3]}

    asked = len(windows(server))
    assert shell.run(source, "-o", deep, "--depth", "5").code == 0
    assert len(windows(server)) == asked + 3  # one window a query
    for row in rows_of(deep):
        places = [place["first_stage_rank"] for place in row["ranking"]]
        assert sorted(places[:5]) == [1, 2, 3, 4, 5]
        assert places[5:] == [6, 7, 8, 9, 10, 11, 12]
        assert [place["score"] for place in row["ranking"]] == list(range(12, 0, -1))


def test_a_limit_reads_the_first_lines_and_is_the_same_job(
    source: Path, shell: Shell, server: JudgeServer, tmp_path: Path
) -> None:
    assert shell.run(source, "--limit", "2").code == 0
    assert len(rows_of(tmp_path / "in.ranked.jsonl")) == 2
    assert len(windows(server)) == 6
    assert shell.run(source).code == 0
    assert len(rows_of(tmp_path / "in.ranked.jsonl")) == 3
    assert len(windows(server)) == 9


def test_standard_input_and_output_carry_rows_alone(
    source: Path, shell: Shell, tmp_path: Path
) -> None:
    assert shell.run(source).code == 0
    expected = (tmp_path / "in.ranked.jsonl").read_bytes()
    piped = shell.run("-", stdin=source.read_bytes())
    assert piped.code == 0, piped.err
    assert piped.out == expected
    assert "3 queries: 3 ok" in piped.err
    assert shell.run(source, "-o", "-").out == expected


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.open), (".zst", zstandard.open)])
def test_packed_files_go_in_and_out(
    source: Path, shell: Shell, tmp_path: Path, suffix: str, pack: Callable[..., IO[bytes]]
) -> None:
    assert shell.run(source).code == 0
    plain = (tmp_path / "in.ranked.jsonl").read_bytes()
    packed, output = tmp_path / f"packed.jsonl{suffix}", tmp_path / f"out.jsonl{suffix}"
    with pack(packed, "wb") as file:
        file.write(source.read_bytes())
    assert shell.run(packed, "-o", output).code == 0
    with pack(output, "rb") as file:
        assert file.read() == plain
    # Without a name of its own the output stands beside the input.
    assert shell.run(packed).code == 0
    assert (tmp_path / "packed.ranked.jsonl").read_bytes() == plain


def test_a_trec_run_says_which_rows_it_leaves_out(
    shell: Shell, rows: list[Row], tmp_path: Path
) -> None:
    spaced = orjson.loads(orjson.dumps(rows[1]).replace(b'"q2-d1"', b'"q2 d1"'))
    query = {**rows[2], "query": {"qid": "q 3", "text": "who tends garden number 3"}}
    source = written(tmp_path / "in.jsonl", [rows[0], spaced, query, b"{torn"])
    trec = ("--output-format", "trec", "--max-failed", "1")
    ended = shell.run(source, *trec, "--top-k", "4")
    assert ended.code == 0, ended.err
    assert "left out of the output: 3 rows" in ended.err
    for reason in ("line 2: ", "'q2 d1'", "line 3: ", "'q 3'", "line 4: "):
        assert reason in ended.err
    lines = (tmp_path / "in.ranked.trec").read_text().splitlines()
    table = [line.split() for line in lines]
    assert [columns[0] for columns in table] == ["q1"] * 4
    assert {(columns[1], columns[5]) for columns in table} == {("Q0", "batchrank-judge")}
    assert [columns[3] for columns in table] == ["1", "2", "3", "4"]
    assert [columns[4] for columns in table] == ["12", "11", "10", "9"]
    report = shell.run(source, *trec, "--top-k", "4", "--json").json
    assert len(report["left_out"]) == 3


def test_the_summary_reads_as_json(source: Path, shell: Shell) -> None:
    ended = shell.run(source, "--json")
    assert ended.code == 0, ended.err
    report = ended.json
    assert report["exit_code"] == 0
    assert report["queries"] == {"ok": 3}
    assert report["windows"]["ok"] == 9
    assert (report["calls"], report["calls_saved"], report["already_finished"]) == (9, 0, 0)
    assert Path(report["output"]).exists()
    again = shell.run(source, "--json").json
    assert (again["calls"], again["already_finished"]) == (0, 3)


def test_an_output_that_nobody_touched_is_not_written_again(
    shell: Shell, source: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out.jsonl"
    first = shell.run(source, "-o", output, "--json").json
    made = _made(output)
    wrote = output.read_bytes()

    again = shell.run(source, "-o", output, "--json").json

    assert _made(output) == made
    for same in ("queries", "windows", "exit_code", "output"):
        assert again[same] == first[same]
    output.write_bytes(b"touched")
    shell.run(source, "-o", output)
    assert output.read_bytes() == wrote
    shell.run(source, "-o", output, "--top-k", "2")
    assert output.read_bytes() != wrote
    shell.run(source, "-o", output)
    assert output.read_bytes() == wrote
    output.unlink()
    shell.run(source, "-o", output)
    assert output.read_bytes() == wrote


def _made(path: Path) -> tuple[int, int]:
    """Which file it is and when it was written; when it was read is of no account."""
    found = path.stat()
    return found.st_ino, found.st_mtime_ns


def test_a_trec_run_holds_a_query_once(rows: list[Row], shell: Shell, tmp_path: Path) -> None:
    other = {**rows[0], "candidates": rows[1]["candidates"]}
    broken = {**rows[1], "query": {**rows[1]["query"], "text": ""}}
    source = tmp_path / "twice.jsonl"
    lines = (broken, rows[0], rows[0], other, rows[1])
    source.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    output = tmp_path / "run.trec"

    ended = shell.run(source, "-o", output, "--output-format", "trec", "--max-failed", "1")

    assert ended.code == 0, ended.err
    assert "left out of the output: 3 rows" in ended.err
    pairs = [tuple(line.split()[:3:2]) for line in output.read_text().splitlines()]
    assert len(pairs) == len(set(pairs)) == sum(len(row["candidates"]) for row in rows[:2])


def test_a_good_result_is_not_left_beside_one_that_was_rejected(
    source: Path, shell: Shell, rows: list[Row]
) -> None:
    output = source.with_name("out.jsonl")
    aside = source.with_name("out.jsonl.rejected")
    written(source, [*rows, b"{torn"])
    assert shell.run(source, "-o", output).code == 3
    assert aside.exists()
    written(source, rows)
    ended = shell.run(source, "-o", output)
    assert (ended.code, aside.exists(), output.exists()) == (0, False, True)
    assert f"{aside} of an earlier run is removed" in ended.err
