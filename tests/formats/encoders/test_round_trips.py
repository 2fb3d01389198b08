"""What is written in a format and read again says the same, and what can't be held is said."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any, get_args

import ir_measures
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from batchrank.errors import LineError, UsageError
from batchrank.formats.convert import Converted, convert
from batchrank.formats.encoders.formats import output_format
from batchrank.formats.records import canonical, read_entry
from batchrank.formats.sources.source import Source
from batchrank.values import InputFormat, OutputFormat
from tests.formats.sources.reading import lines_of

Line = dict[str, Any]

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["", '"', "a,b\tc;d", "\r", "\r\n", "\n", "\0", "\u2028\u0085", "=1+1", "NaN", "null", "\ufeff"]
)
SOLID = TEXTS.filter(lambda text: bool(text.strip()))
IDS = SOLID | st.integers(-(2**60), 2**60)
SCORES = st.none() | st.floats(allow_nan=False) | st.integers(-(2**60), 2**60)
JSON = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | TEXTS, st.lists, max_leaves=3)
CANDIDATES = st.fixed_dictionaries(
    {"docid": IDS, "score": SCORES, "doc": st.fixed_dictionaries({"text": TEXTS, "title": TEXTS})},
    optional={
        "metadata": st.dictionaries(TEXTS, JSON, max_size=2),
        "embedding": st.lists(st.floats(-1, 1), max_size=3),
        "url": TEXTS,
    },
)
LINES: st.SearchStrategy[Line] = st.fixed_dictionaries(
    {
        "query": st.fixed_dictionaries({"qid": IDS, "text": SOLID}),
        "candidates": st.lists(CANDIDATES, min_size=1, max_size=4),
    },
    optional={"weight": st.floats(0, 9), "session": JSON},
)
LOGS: st.SearchStrategy[list[Line]] = st.lists(
    LINES, min_size=1, max_size=3, unique_by=lambda line: str(line["query"]["qid"])
)

READ_BACK: dict[OutputFormat, tuple[str, InputFormat]] = {
    "jsonl": ("jsonl", "jsonl"),
    "json": ("json", "json"),
    "rankgpt": ("json", "json"),
    "csv": ("csv", "csv"),
    "tsv": ("tsv", "tsv"),
    "parquet": ("parquet", "parquet"),
    "parquet-nested": ("parquet", "parquet"),
}


def written(folder: Path, lines: list[Line]) -> Source:
    path = folder / "in.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Source(str(path))


def said(source: Source) -> list[Line]:
    return [canonical(read_entry(line.data)[0]) for line in lines_of(source)]


def converted(
    folder: Path, lines: list[Line], form: OutputFormat, name: str
) -> tuple[Path, Converted]:
    out = folder / name
    return out, convert(written(folder, lines), str(out), form, None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trips")


@pytest.mark.parametrize("form", READ_BACK)
@given(LOGS)
@settings(max_examples=20)
def test_all_that_a_line_says_comes_back(folder: Path, form: OutputFormat, log: list[Line]) -> None:
    ending, told = READ_BACK[form]
    out, found = converted(folder, log, form, f"out.{ending}")
    assert (found.queries, found.left_out) == (len(log), 0)
    expected = said(written(folder, log))
    assert said(Source(str(out))) == expected
    assert said(Source(str(out), told)) == expected


@pytest.mark.parametrize("form", ["rankllm", "rankllm-json"])
@given(LOGS)
@settings(max_examples=20)
def test_rankllm_gets_scores_that_fall(folder: Path, form: OutputFormat, log: list[Line]) -> None:
    out, _ = converted(folder, log, form, f"out.{'jsonl' if form == 'rankllm' else 'json'}")
    for line, before in zip(said(Source(str(out))), said(written(folder, log)), strict=True):
        scores = [candidate["score"] for candidate in line["candidates"]]
        assert scores == sorted(set(scores), reverse=True)
        given_scores = [candidate.pop("score") for candidate in before["candidates"]]
        falls = None not in given_scores and given_scores == sorted(set(given_scores), reverse=True)
        assert not falls or scores == given_scores
        for candidate in line["candidates"]:
            del candidate["score"]
        assert line == before


@given(LOGS)
@settings(max_examples=20)
def test_a_trec_run_is_read_by_ir_measures(folder: Path, log: list[Line]) -> None:
    wanted = {}
    for line in said(written(folder, log)):
        qid, docids = line["query"]["qid"], [one["docid"] for one in line["candidates"]]
        if all(one.split() == [one] and "\0" not in one for one in (qid, *docids)):
            wanted[qid] = docids
    assume(wanted)
    out, found = converted(folder, log, "trec", "out.trec")
    assert (found.queries, found.left_out) == (len(wanted), len(log) - len(wanted))
    read: dict[str, dict[str, float]] = {}
    reader: Any = ir_measures.read_trec_run
    for row in reader(str(out)):
        read.setdefault(row.query_id, {})[row.doc_id] = row.score
    assert {qid: sorted(docs, key=lambda one: -docs[one]) for qid, docs in read.items()} == wanted


def line(qid: object, *docids: object) -> Line:
    candidates = [{"docid": docid, "text": f"of {docid}"} for docid in docids]
    return {"query": {"qid": qid, "text": f"what of {qid}"}, "candidates": candidates}


def test_tables_are_read_by_pandas_and_pyarrow(tmp_path: Path) -> None:
    log = [line("q1", "d1", 2), line(3, "d1")]
    log[0]["candidates"][0] |= {"score": 2.5, "title": "T", "metadata": {"year": 2024}}
    for name, separator in (("out.csv", ","), ("out.tsv", "\t")):
        path, _ = converted(tmp_path, log, output_format(None, name), name)
        frame = pd.read_csv(path, sep=separator, dtype={"qid": str, "docid": str})
        assert list(frame["docid"]) == ["d1", "2", "d1"]
        assert list(frame["text"]) == ["of d1", "of 2", "of d1"]
        assert frame["score"][0] == 2.5
        with path.open(newline="") as file:
            assert next(csv.reader(file, delimiter=separator)) == list(frame.columns)
    flat, _ = converted(tmp_path, log, "parquet", "flat.parquet")
    assert pd.read_parquet(flat)["qid"].tolist() == ["q1", "q1", "3"]
    nested, _ = converted(tmp_path, log, "parquet-nested", "nested.parquet")
    rows = parquet.read_table(nested).to_pylist()
    assert [[one["docid"] for one in row["candidates"]] for row in rows] == [["d1", "2"], ["d1"]]
    assert rows[0]["candidates"][0]["metadata"] == '{"year":2024}'


def test_parquet_is_written_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("batchrank.formats.encoders.tables._GROUP", 3)
    log = [line(f"q{number}", "d1", "d2") for number in range(5)]
    path, _ = converted(tmp_path, log, "parquet", "out.parquet")
    assert parquet.ParquetFile(path).num_row_groups == 3
    assert said(Source(str(path))) == said(written(tmp_path, log))


@pytest.mark.parametrize("name", ["out.csv.gz", "out.parquet.zst", "out.json.gz", "out.jsonl.zst"])
def test_outputs_are_packed_by_their_names(tmp_path: Path, name: str) -> None:
    log = [line("q1", "d1", "d2"), line("q2", "d1")]
    path, _ = converted(tmp_path, log, output_format(None, name), name)
    assert said(Source(str(path))) == said(written(tmp_path, log))


def test_what_a_format_can_t_hold_is_left_out_and_named(tmp_path: Path) -> None:
    log = [line("q1", "d1"), line("q 2", "d1"), line("q3", "d 1"), line("q1", "d1"), line("q4")]
    _, trec = converted(tmp_path, log, "trec", "out.trec")
    assert trec.queries == 1
    assert [int(reason[5:6]) for reason in trec.reasons] == [2, 3, 4, 5]
    assert "no candidates" in trec.reasons[-1]
    _, table = converted(tmp_path, [*log, {"query": 1}], "csv", "out.csv")
    assert (table.queries, table.left_out) == (3, 3)
    assert "line 4: The qid 'q1' stands in the output already." in table.reasons
    assert any("no candidates" in reason for reason in table.reasons)


@pytest.mark.parametrize("form", get_args(OutputFormat))
@pytest.mark.parametrize("log", [[{"query": 1}, {"query": 2}], [], [{"query": "a", "ranking": 0}]])
def test_where_nothing_can_be_written_the_old_file_stays(
    tmp_path: Path, form: OutputFormat, log: list[Line]
) -> None:
    old = tmp_path / "out"
    old.write_text("yesterday's")
    with pytest.raises(UsageError, match=r"nothing is: line 1: .*|is empty"):
        converted(tmp_path, log, form, "out")
    assert old.read_text() == "yesterday's"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out"]


@pytest.mark.parametrize("form", get_args(OutputFormat))
def test_a_qid_that_is_taken_is_named_whatever_the_format(
    tmp_path: Path, form: OutputFormat
) -> None:
    log = [line("q1", "d1", "d2"), line("q2", "d1"), line("q1", "d2", "d1"), line("q1", "d9")]
    path, found = converted(tmp_path, log, form, "out")
    assert (found.queries, found.left_out) == (2, 2)
    for number, reason in zip((3, 4), found.reasons, strict=True):
        assert reason.startswith(f"line {number}: The qid 'q1' of line {number} already stands in")
    if form != "trec":
        assert [one["query"]["qid"] for one in said(Source(str(path)))] == ["q1", "q2"]


@pytest.mark.parametrize("form", get_args(OutputFormat))
def test_a_line_that_is_repeated_contradicts_nothing(tmp_path: Path, form: OutputFormat) -> None:
    _, found = converted(tmp_path, [line("q1", "d1")] * 2, form, "out")
    holds_both = form in ("jsonl", "json", "parquet-nested")
    assert (found.queries, found.left_out) == ((2, 0) if holds_both else (1, 1))


def test_every_text_of_a_candidate_is_kept(tmp_path: Path) -> None:
    odd = {
        "query": {"qid": "q", "text": "a", "lang": "de"},
        "candidates": [
            {"docid": "d1", "doc": {"segment": "x", "text": "y", "url": "u"}, "body": "z"},
            {"path": "a.py", "start_line": 3, "end_line": 9, "content": "code"},
            {"docid": "d3", "text": "t", "embedding": ["no", "vector"], "metadata": {"a": [1]}},
        ],
    }
    (got,) = said(written(tmp_path, [odd]))
    assert got["lang"] == "de"
    assert [one.get("metadata") for one in got["candidates"]] == [
        {"body": "z", "segment": "x", "url": "u"},
        {"path": "a.py", "start_line": 3, "end_line": 9},
        {"a": [1], "embedding": ["no", "vector"]},
    ]
    with pytest.raises(LineError):
        read_entry(b"{}")


PLACES = st.fixed_dictionaries(
    {"docid": SOLID, "rank": st.integers(1, 99), "first_stage_rank": st.integers(1, 99)}
    | {"score": st.integers(1, 99), "first_stage_score": st.none() | st.floats(-9, 9)},
    optional={"filtered": SOLID},
)
COUNTS = st.integers(0, 2**40)
RESULTS: st.SearchStrategy[list[Line]] = st.lists(
    st.fixed_dictionaries(
        {"qid": SOLID, "query": SOLID, "status": st.sampled_from(["ok", "degraded"])}
        | {"ranking": st.lists(PLACES, min_size=1, max_size=3)}
        | {"windows": st.fixed_dictionaries({"ok": COUNTS, "error": COUNTS}), "calls": COUNTS}
        | {"prompt_tokens": COUNTS, "completion_tokens": COUNTS}
        | {"model": SOLID, "template": SOLID},
        optional={
            "reduced": st.just(value=True),
            "incremental": st.just(value=True),
            "error": st.fixed_dictionaries({"kind": SOLID, "message": SOLID, "line": COUNTS}),
        },
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda row: str(row["qid"]),
)


@pytest.mark.parametrize("form", ["jsonl", "json", "csv", "tsv", "parquet", "parquet-nested"])
@given(RESULTS)
@settings(max_examples=20)
def test_results_come_back_too(folder: Path, form: OutputFormat, rows: list[Line]) -> None:
    out, found = converted(folder, rows, form, f"results.{READ_BACK[form][0]}")
    assert (found.queries, found.left_out) == (len(rows), 0), found.reasons
    again = folder / "again.jsonl"
    assert convert(Source(str(out)), str(again), "jsonl", None).left_out == 0
    assert [json.loads(one) for one in again.read_bytes().splitlines()] == rows
    # As an input it is refused as a whole; an array is not looked into, its elements are refused.
    with pytest.raises((UsageError, LineError), match=r'own output|There is no "candidates"'):
        said(Source(str(out), READ_BACK[form][1]))


def test_a_result_that_is_none_is_left_out(tmp_path: Path) -> None:
    odd = [{"query": "a", "qid": "q", "ranking": 7}, line("q1", "d1")]
    _, found = converted(tmp_path, odd, "csv", "out.csv")
    assert found.reasons == ["line 1: The result can't be read: status: Field required."]
    good: Line = {
        "qid": "q",
        "query": "a",
        "status": "ok",
        "windows": {},
        "model": "m",
        "template": "t",
    }
    good |= {"ranking": [], "calls": 0, "prompt_tokens": 0, "completion_tokens": 0}
    _, found = converted(tmp_path, [good, line("q1", "d1")], "jsonl", "out.jsonl")
    assert found.reasons == ["line 2: A file holds requests or results, not both."]


def test_results_that_contradict_each_other_are_named(tmp_path: Path) -> None:
    place = {"docid": "d1", "rank": 1, "first_stage_rank": 1, "score": 1, "first_stage_score": 1.0}
    row: Line = {"qid": "q", "query": "a", "status": "ok", "ranking": [place], "windows": {}}
    row |= {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0, "model": "m", "template": "t"}
    failed = row | {"status": "failed", "error": {"kind": "duplicate", "message": "m", "line": 2}}
    log = [row, failed, row | {"calls": 1}, row]
    path, found = converted(tmp_path, log, "jsonl", "out.jsonl")
    assert (found.queries, len(found.reasons)) == (3, 1)
    assert found.reasons[0].startswith("line 3: The qid 'q' of line 3 already stands in line 1")
    assert len(path.read_bytes().splitlines()) == 3
