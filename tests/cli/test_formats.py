"""Formats in and out by the command line: run, export, check and convert."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import get_args

import orjson
import pandas as pd
import pytest

from batchrank.formats.encoders.formats import ending
from batchrank.values import OutputFormat
from scripts.judge import JudgeServer
from tests.cli.conftest import Shell
from tests.cli.running import Row, batchrank, docids, rows_of, written


@pytest.fixture
def done(shell: Shell, source: Path) -> Shell:
    """A finished run of the three queries, in which line 2 fails."""
    lines = source.read_bytes().splitlines()
    source.write_bytes(b"\n".join([lines[0], b"{torn", *lines[1:]]))
    assert shell.run(source, "--max-failed", "1").code == 0
    return shell


def ranked(folder: Path) -> dict[str, list[str]]:
    rows = rows_of(folder / "in.ranked.jsonl")
    return {row["qid"]: docids(row) for row in rows if row["qid"] is not None}


def beir(folder: Path, rows: list[Row]) -> Path:
    """The rows as a BEIR folder."""
    folder.mkdir()
    documents = [one for row in rows for one in row["candidates"]]
    corpus = [{"_id": one["docid"], "title": "", "text": one["doc"]["text"]} for one in documents]
    written(folder / "corpus.jsonl", corpus)
    queries = [{"_id": row["query"]["qid"], "text": row["query"]["text"]} for row in rows]
    written(folder / "queries.jsonl", queries)
    run = [
        f"{row['query']['qid']} Q0 {one['docid']} {rank} {99 - rank} bm25\n"
        for row in rows
        for rank, one in enumerate(row["candidates"], 1)
    ]
    (folder / "bm25.trec").write_text("".join(run))
    return folder


def test_an_input_in_another_format_ranks_alike(
    shell: Shell, source: Path, rows: list[Row], tmp_path: Path, server: JudgeServer
) -> None:
    assert shell.run(source).code == 0
    expected = ranked(tmp_path)
    asked = len(server.calls)
    for name in ("in.csv", "in.json", "in.parquet"):
        assert batchrank("convert", source, tmp_path / name).code == 0
        ended = shell.run(tmp_path / name, "-o", tmp_path / "out.jsonl")
        assert ended.code == 0, ended.err
        got = rows_of(tmp_path / "out.jsonl")
        assert {row["qid"]: docids(row) for row in got} == expected
    folder = beir(tmp_path / "beir", rows)
    ended = shell.run(folder)
    assert ended.code == 0, ended.err
    got = rows_of(tmp_path / "beir.ranked.jsonl")
    assert {row["qid"]: docids(row) for row in got} == expected
    texts = ("--corpus", folder / "corpus.jsonl", "--topics", folder / "queries.jsonl")
    ended = shell.run(folder / "bm25.trec", *texts, "-o", tmp_path / "out.trec", "--limit", "2")
    assert ended.code == 0, ended.err
    lines = [line.split() for line in (tmp_path / "out.trec").read_text().splitlines()]
    assert [line[2] for line in lines] == [*expected["q1"], *expected["q2"]]
    # The same prompts: no window was asked twice.
    windows = [call for call in server.calls[asked:] if call.purpose == "window"]
    assert windows == []


def test_no_output_is_one_of_the_files_that_are_read(
    shell: Shell, rows: list[Row], tmp_path: Path
) -> None:
    folder = beir(tmp_path / "beir", rows)
    texts = ("--corpus", folder / "corpus.jsonl", "--topics", folder / "queries.jsonl")
    for read in ((folder / "bm25.trec", *texts), (folder,)):
        ended = batchrank("convert", *read, folder / "corpus.jsonl")
        assert (ended.code, "is the corpus" in ended.err) == (2, True)
    ended = shell.run(folder, "-o", folder / "bm25.trec")
    assert (ended.code, "is the first stage's run" in ended.err) == (2, True)
    ended = shell.run(folder / "bm25.trec", *texts, "-o", folder / "queries.jsonl")
    assert (ended.code, "is the file of topics" in ended.err) == (2, True)


def test_tables_of_results_have_a_row_a_candidate(done: Shell, tmp_path: Path) -> None:
    expected = ranked(tmp_path)
    for name in ("out.csv", "out.tsv", "out.parquet"):
        ended = done.look("export", "-o", tmp_path / name, "--top-k", "3")
        assert ended.code == 0
        assert "left out: line 2: The qid is not known." in ended.err
    parquet = pd.read_parquet(tmp_path / "out.parquet")
    table = pd.read_csv(tmp_path / "out.csv")
    assert list(table.columns) == list(parquet.columns)
    assert list(pd.read_csv(tmp_path / "out.tsv", sep="\t")["docid"]) == list(parquet["docid"])
    for frame in (table, parquet):
        got = frame.groupby("qid")["docid"].apply(list).to_dict()
        assert got == {qid: ranking[:3] for qid, ranking in expected.items()}
        assert set(frame["status"]) == {"ok"}
        assert list(frame["rank"][:3]) == [1, 2, 3]
        assert orjson.loads(frame["windows"][0])["ok"] == 3


def test_nested_and_json_results_hold_every_row(done: Shell, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    assert done.look("export", "-o", out, "--output-format", "parquet-nested").err == ""
    frame = pd.read_parquet(out)
    assert list(frame["status"]) == ["ok", "failed", "ok", "ok"]
    assert orjson.loads(frame["error"][1])["line"] == 2
    assert [one["docid"] for one in frame["ranking"][0]] == ranked(tmp_path)["q1"]
    array = done.look("export", "-o", tmp_path / "out.json")
    assert array.code == 0
    rows = rows_of(tmp_path / "in.ranked.jsonl")
    assert orjson.loads((tmp_path / "out.json").read_bytes()) == rows


def test_rankllm_gets_texts_and_on_demand_the_history(
    done: Shell, source: Path, tmp_path: Path
) -> None:
    form = ("export", "--output-format", "rankllm")
    bare = done.look(*form)
    assert "texts of 3 queries: the input is not known" in bare.err
    assert "name the input with --texts" in bare.err
    whole = done.look(*form, "--texts", source, "--invocations-history")
    assert [line for line in whole.err.splitlines() if "texts" in line] == []
    results = [orjson.loads(line) for line in whole.out.splitlines()]
    texts = {
        one["docid"]: one["doc"]["text"]
        for line in (source.read_bytes().splitlines()[0], *source.read_bytes().splitlines()[2:])
        for one in orjson.loads(line)["candidates"]
    }
    assert [result["query"]["qid"] for result in results] == ["q1", "q2", "q3"]
    for result in results:
        found = result["candidates"]
        assert [one["docid"] for one in found] == ranked(tmp_path)[result["query"]["qid"]]
        assert [one["score"] for one in found] == [float(12 - place) for place in range(12)]
        assert all(one["doc"]["text"] == texts[one["docid"]] for one in found)
        assert len(result["invocations_history"]) == 3
        call = result["invocations_history"][0]
        assert call["input_token_count"] > 0
        assert len(call["shown"]) == 6
        assert call["response"]
    hits = done.look("export", "--output-format", "rankgpt", "--texts", source)
    first = orjson.loads(hits.out)[0]
    assert first["hits"][0]["content"] == texts[first["hits"][0]["docid"]]
    assert first["hits"][0]["qid"] == "q1"


def test_a_run_writes_the_texts_of_its_input(shell: Shell, source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    ended = shell.run(source, "--output-format", "rankllm", "-o", out)
    assert ended.code == 0, ended.err
    rows = rows_of(out)
    assert all(one["doc"]["text"] for row in rows for one in row["candidates"])
    assert "texts of" not in ended.err


@pytest.mark.parametrize("form", get_args(OutputFormat))
def test_the_next_night_replaces_what_the_last_one_wrote(
    done: Shell, rows: list[Row], source: Path, tmp_path: Path, form: OutputFormat
) -> None:
    out = tmp_path / f"out.{ending(form)}"
    for night in (rows[:2], rows):
        written(source, night)
        ended = done.run(source, "--output-format", form, "-o", out)
        assert ended.code == 0, ended.err
    assert done.look("export", "--output-format", form, "-o", out).code == 0
    copy = tmp_path / f"copy.{ending(form)}"
    for _ in range(2):
        assert batchrank("convert", source, copy, "--to", form).code == 0


def test_texts_are_missed_of_queries_that_are_written_alone(
    shell: Shell, rows: list[Row], tmp_path: Path
) -> None:
    bad = {**rows[1], "candidates": [*rows[1]["candidates"], {"docid": "textless"}]}
    source = written(tmp_path / "in.jsonl", [rows[0], bad, rows[2]])
    assert shell.run(source, "--max-failed", "100%").code == 0
    ended = shell.look("export", "--output-format", "rankllm")
    assert len(ended.out.splitlines()) == 2
    assert "left out: texts of 2 queries: the input is not known" in ended.err


def test_texts_of_another_input_are_not_taken(done: Shell, rows: list[Row], tmp_path: Path) -> None:
    other = written(tmp_path / "other.jsonl", [rows[1], rows[0]])
    ended = done.look("export", "--output-format", "rankgpt", "--texts", other)
    assert "texts of 3 queries: the input has changed" in ended.err
    texts = {one["content"] for row in orjson.loads(ended.out) for one in row["hits"]}
    assert texts == {""}


def test_an_output_is_converted_and_never_ranked(done: Shell, tmp_path: Path) -> None:
    own, trec = tmp_path / "in.ranked.jsonl", tmp_path / "out.trec"
    ended = batchrank("convert", own, trec)
    assert (ended.code, "left out: line 2: " in ended.err) == (2, True)
    # All but the tag, which names the model where a store says which.
    exported = done.look("export", "--output-format", "trec").out.decode().splitlines()
    lines = trec.read_text().splitlines()
    assert [line.rsplit(" ", 1)[0] for line in lines] == [
        line.rsplit(" ", 1)[0] for line in exported
    ]
    for name in ("out.csv", "out.parquet"):
        batchrank("convert", own, tmp_path / name)
        refused = done.run(tmp_path / name)
        assert (refused.code, "own output" in refused.err) == (2, True)


def test_convert_says_what_it_leaves_out(source: Path, tmp_path: Path) -> None:
    with source.open("ab") as file:
        file.write(b"{torn\n")
    out = tmp_path / "out.trec"
    ended = batchrank("convert", source, out)
    assert ended.code == 2
    assert "left out: line 4: " in ended.err
    assert "the texts are left out" in ended.err
    assert "3 queries written, 1 left out" in ended.err
    assert len(out.read_text().splitlines()) == 36
    said = batchrank("convert", "-", "-", "--to", "csv", stdin=source.read_bytes())
    assert said.out.startswith(b"qid,query,docid,score,title,text,")


def test_a_failed_conversion_leaves_the_file_alone(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_text("yesterday's")
    array = tmp_path / "in.json"
    array.write_bytes(b"[" + source.read_bytes().splitlines()[0] + b",")
    ended = batchrank("convert", array, out)
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "ends in element 2" in ended.err
    assert out.read_text() == "yesterday's"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--to", "xls"), "--to"),
        (("--from", "xml"), "--from"),
        (("--run-file", "x"), "--run-file goes with a BEIR folder"),
        (("--corpus", "x"), "--topics is missing"),
    ],
)
def test_convert_refuses_in_its_own_words(
    source: Path, tmp_path: Path, arguments: tuple[str, str], said: str
) -> None:
    ended = batchrank("convert", source, tmp_path / "out", *arguments)
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert said in ended.err


def test_parquet_without_its_package_is_refused_before_anything_is_asked(
    shell: Shell,
    source: Path,
    server: JudgeServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = tmp_path / "in.parquet"
    assert batchrank("convert", source, table).code == 0
    kept = shell.run(source, "-o", table)
    assert (kept.code, "holds queries with candidates" in kept.err) == (2, True)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    runs = (shell.run(source, "-o", tmp_path / "out.parquet"), shell.run(table))
    for ended in (*runs, batchrank("convert", source, tmp_path / "out.parquet")):
        assert (ended.code, ended.err.count("\n")) == (2, 1)
        assert "pip install 'batchrank[parquet]'" in ended.err
    assert server.calls == []
    assert not shell.store.exists()


def test_history_goes_with_rankllm(done: Shell) -> None:
    ended = done.look("export", "--invocations-history")
    assert (ended.code, "rankllm" in ended.err) == (2, True)
