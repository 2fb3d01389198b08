"""What can be measured is read as it stands, and what can't is refused with its line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import zstandard

from batchrank.errors import UsageError
from batchrank.formats.trec import read_qrels
from batchrank.measuring.runs import read_run
from batchrank.metrics.evaluation import parse_measures
from batchrank.values import QueryStatus
from tests.evaluation.files import jsonl, row, trec

RUN = "q1 Q0 b 1 2.5 tag\nq1\tQ0 a 2 3.5 tag\n\nq2 Q0 a 1 1 tag\nq1 Q0 c 9 2.5 tag\n"


def test_a_run_is_ordered_by_score_then_by_the_larger_docid(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_text(RUN)
    read = read_run(path)
    assert read.ranking("q1") == ("a", "c", "b")
    assert read.ranking("q2") == ("a",)
    assert (read.first_stage, read.rows.total(), read.unwanted) == (None, 0, [])


def test_packed_runs_and_qrels_are_read(tmp_path: Path) -> None:
    packed = tmp_path / "run.gz"
    packed.write_bytes(gzip.compress(RUN.encode()))
    assert read_run(packed).ranking("q1") == ("a", "c", "b")
    packed = tmp_path / "qrels.zst"
    packed.write_bytes(zstandard.compress("\ufeffq1 0 a 2\r\nq1 0 b -1".encode()))
    assert read_qrels(packed) == {"q1": {"a": 2, "b": -1}}


def test_only_wanted_queries_are_kept_and_the_others_named(tmp_path: Path) -> None:
    path = trec(tmp_path / "run.trec", {"q3": ["a"], "q1": ["a"], "q2": ["b"]})
    read = read_run(path, {"q1"})
    assert list(read.scores) == ["q1"]
    assert read.unwanted == ["q2", "q3"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("q1 Q0 a 1 2.5\n", "line 1: expected the 6 columns .* found 5"),
        ("q1 Q0 a 1 2 t\nq1 0 a 1\n", "line 2: .* found 4: this looks like qrels"),
        ("q1 Q0 a 1 high t\n", "line 1: the score 'high' is no number"),
        ("q1 Q0 a 1 nan t\n", "line 1: the score 'nan' is no number"),
        ("\nq1 Q0 a 1 2 t\nq1 Q0 a 2 1 t\n", "line 3: document 'a' of query 'q1' again"),
        ("", "is empty"),
        ('{"qid": 1}\n', "line 1: neither a row of batchrank's output nor of its input"),
        ('{"ranking": [1], "qid": "q", "query": "", "status": "ok"}\n', "line 1: not a row"),
        ('{"ranking": [], "qid": "q", "query": "", "status": "fine"}\n', "line 1: not a row"),
        ('{"ranking": ', "line 1: no JSON object"),
    ],
)
def test_a_bad_run_is_refused(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "run"
    path.write_text(text)
    with pytest.raises(UsageError, match=told):
        read_run(path)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"q1 0 a\n", "line 1: expected the 4 columns of TREC qrels.* found 3"),
        (b"q1 0 a 1\nq1 Q0 a 1 2.5 t\n", "line 2: .* found 6: this looks like a run"),
        (b'{"qid": "q1"}\n', "this looks like JSON"),
        (b"q1 0 a 1.5\n", "line 1: the grade '1.5' is no whole number"),
        (b"q1 0 a 99999999\n", "line 1: grade 99999999 is out of range"),
        (b"q1 0 a 1\nq1 0 a 2\n", "line 2: document 'a' of query 'q1' has grade 2, and 1 on"),
        (b"q1 0 \xff 1\n", "line 1: not UTF-8"),
        (b" \n", "is empty"),
        (gzip.compress(b"q1 0 a 1\n" * 99, mtime=0)[:-12], "damaged or cut off"),
    ],
)
def test_bad_qrels_are_refused(tmp_path: Path, data: bytes, told: str) -> None:
    path = tmp_path / "qrels"
    path.write_bytes(data)
    with pytest.raises(UsageError, match=told):
        read_qrels(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_qrels(tmp_path / "qrels")


def test_the_same_judgement_twice_is_one(tmp_path: Path) -> None:
    path = tmp_path / "qrels"
    path.write_text("q1 0 a 1\nq1 0 a 1\n")
    assert read_qrels(path) == {"q1": {"a": 1}}


def test_an_output_tells_its_first_stage_and_its_rows(tmp_path: Path) -> None:
    path = jsonl(
        tmp_path / "out.jsonl",
        [
            row("q1", ["c", "a", "b"], ["a", "b", "c"], query="one"),
            row("q2", ["a"], ["a"], status="unranked"),
            row("q1", ["a", "b", "c"], ["a", "b", "c"], status="failed"),
            row("q3", [], [], status="failed"),
            {**row("q4", [], [], status="failed"), "qid": None, "query": None},
        ],
    )
    read = read_run(path)
    assert read.ranking("q1") == ("c", "a", "b")
    assert read.first_stage == {"q1": {"a": 3, "b": 2, "c": 1}, "q2": {"a": 1}}
    assert read.texts["q1"] == "one"
    assert list(read.scores) == ["q1", "q2"]
    assert read.rows == {QueryStatus.OK: 1, QueryStatus.UNRANKED: 1, QueryStatus.FAILED: 3}
    assert read.repeated == 1


def test_an_output_cut_by_top_k_does_not_tell_its_first_stage(tmp_path: Path) -> None:
    whole = row("q1", ["b", "a"], ["a", "b"])
    for ranking in (["c"], ["b", "a"]):
        cut = row("q2", ranking, ["a", "b", "c"])
        read = read_run(jsonl(tmp_path / "out.jsonl", [whole, cut]))
        assert read.is_cut
        assert read.first_stage is None
        assert read.ranking("q2") == tuple(ranking)


def test_the_input_is_a_run_of_the_first_stage(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(
        '{"qid": "q1", "query": "one", "candidates": [{"docid": "b", "text": "x"}, '
        '{"docid": "a", "text": "y"}]}\n{"qid": "q2", "query": "two", "candidates": 7}\n'
    )
    read = read_run(path)
    assert read.ranking("q1") == ("b", "a")
    assert read.rows[QueryStatus.FAILED] == 1


def test_measures_are_named_as_ir_measures_does() -> None:
    names = ["MRR@10", "nDCG@10", "RR@10", "P(rel=2)@5", "IPrec@0.1"]
    assert [str(measure) for measure in parse_measures(names)] == [
        "RR@10",
        "nDCG@10",
        "P(rel=2)@5",
        "IPrec@0.1",
    ]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("ndgc@10", "unknown measure 'ndgc@10'; did you mean nDCG@10"),
        ("zzz", "unknown measure 'zzz'; for example nDCG@10"),
        ("nDCG@ten", "can't be read: write it like nDCG@10"),
        ("nDCG@10 P@5", "each with a --measure of its own"),
        ("", "can't be read"),
        # trec_eval's code would end the process at these.
        ("nDCG@0", "a cutoff is at least 1"),
        ("nDCG@9999999999999", "at most 1,000,000"),
        ("P", r"invalid param cutoff \(none given\)"),
        ("P(ref=2)@5", "no parameter 'ref'; it has: .*rel"),
        ("Bpref@3", "no parameter 'cutoff'"),
        ("alpha_nDCG@20", "nothing that is installed computes alpha_nDCG@20.*pip install"),
    ],
)
def test_a_bad_measure_is_refused(name: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        parse_measures([name])
