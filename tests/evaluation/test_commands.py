"""`eval` and `compare` as a user meets them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from tests.cli.running import Result, batchrank
from tests.evaluation.files import Ranked, jsonl, qrels, row, trec

GRADES = {
    "q1": {"a": 1, "b": 0},
    "q2": {"b": 1},
    "q3": {"c": 2},
    "q4": {"a": 1},
}
FIRST: Ranked = {"q1": ["a", "b"], "q2": ["a", "b"], "q3": ["a", "b", "c"], "q9": ["a"]}
AFTER: Ranked = {"q1": ["b", "a"], "q2": ["b", "a"], "q3": ["a", "b", "c"], "q9": ["a"]}


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    return qrels(tmp_path / "qrels", GRADES)


@pytest.fixture
def output(tmp_path: Path) -> Path:
    statuses = ("ok", "degraded", "ok", "failed")
    return jsonl(
        tmp_path / "out.jsonl",
        [
            row(qid, ranking, FIRST[qid], status=status)
            for status, (qid, ranking) in zip(statuses, AFTER.items(), strict=True)
        ],
    )


def value(result: Result) -> Any:
    assert result.code == 0, result.err
    return result.json


def text(result: Result) -> str:
    assert result.code == 0, result.err
    told = result.out.decode()
    assert all(cell_len(line) <= 100 for line in told.splitlines())
    return told


def refusal(result: Result) -> str:
    assert result.code == 2
    assert result.out == b""
    return result.err


def test_eval_puts_an_output_beside_its_first_stage(output: Path, judged: Path) -> None:
    found = value(batchrank("eval", output, "--qrels", judged, "--measure", "RR@10", "--json"))
    assert found["measures"] == [
        {
            "measure": "RR@10",
            # (1 + 1/2 + 1/3) / 3 and (1/2 + 1 + 1/3) / 3: q4 is in no run
            "before": pytest.approx(11 / 18),
            "after": pytest.approx(11 / 18),
            "change": 0,
            "low": pytest.approx(-0.5),
            "high": pytest.approx(0.5),
            "p": 1,
            "wins": 1,
            "ties": 1,
            "losses": 1,
        }
    ]
    assert (found["queries"], found["compared"]) == (4, 3)
    assert found["missing"] == found["missing_in_first_stage"] == ["q4"]
    assert found["without_judgements"] == ["q9"]
    assert found["rows"] == {"ok": 2, "degraded": 1, "failed": 1}
    assert [query["qid"] for query in found["most_hurt"]] == ["q1"]
    assert [query["qid"] for query in found["most_helped"]] == ["q2"]
    assert found["per_query"][0] == {
        "qid": "q1",
        "query": "what was asked",
        "before": {"RR@10": 1.0},
        "after": {"RR@10": 0.5},
    }
    assert found["spending"] is found["worth"] is None


def test_eval_names_what_the_figures_do_not_show(output: Path, judged: Path) -> None:
    told = text(batchrank("eval", output, "--qrels", judged))
    assert "nDCG@10" in told
    assert "the run lacks 1 judged query, it is left out: q4" in told
    assert "1 query without judgements left out: q9" in told
    assert "4 rows: 2 ok, 1 degraded, 1 failed" in told
    assert "most hurt by nDCG@10:\nqid  query" in told


def test_eval_shows_every_query_when_asked(output: Path, judged: Path) -> None:
    told = text(batchrank("eval", output, "--qrels", judged, "--per-query"))
    shown = told.split("all queries by nDCG@10, the most hurt first:\n")[1].splitlines()
    assert [line.split()[0] for line in shown[1:4]] == ["q1", "q3", "q2"]


@pytest.mark.parametrize("form", ["run", "input"])
def test_a_trec_run_takes_its_first_stage_from_a_file(
    tmp_path: Path, judged: Path, form: str
) -> None:
    run = trec(tmp_path / "run.trec", AFTER)
    if form == "run":
        first = trec(tmp_path / "first.trec", FIRST)
    else:
        first = jsonl(
            tmp_path / "in.jsonl",
            [
                {
                    "qid": qid,
                    "query": f"text of {qid}",
                    "candidates": [{"docid": docid, "text": docid} for docid in docids],
                }
                for qid, docids in FIRST.items()
            ],
        )
    arguments = ("eval", run, "--qrels", judged, "--first-stage", first)
    found = value(batchrank(*arguments, "--json"))
    (rr,) = (entry for entry in found["measures"] if entry["measure"] == "RR@10")
    assert (rr["wins"], rr["ties"], rr["losses"]) == (1, 1, 1)
    assert ("text of q1" in text(batchrank(*arguments))) is (form == "input")


def test_without_a_first_stage_the_run_stands_alone(tmp_path: Path, judged: Path) -> None:
    run = trec(tmp_path / "run.trec", AFTER)
    assert "give --first-stage" in text(batchrank("eval", run, "--qrels", judged))
    found = value(batchrank("eval", run, "--qrels", judged, "--json"))
    assert found["first_stage"] is None
    assert found["measures"][1] == {
        "measure": "RR@10",
        "before": None,
        "after": pytest.approx(11 / 24),
    }
    told = text(batchrank("eval", run, "--qrels", judged, "--measure", "P@1", "--per-query"))
    assert "qid     P@1\nq1   0.0000\n" in told


def test_a_cut_output_says_why_it_has_no_first_stage(tmp_path: Path, judged: Path) -> None:
    output = jsonl(tmp_path / "out.jsonl", [row("q1", ["b"], ["a", "b"])])
    told = text(batchrank("eval", output, "--qrels", judged))
    assert "measure the run in the store, or give --first-stage" in told
    assert "cut by --top-k to 1 document a query" in told


def test_identical_runs_do_not_differ(tmp_path: Path, judged: Path) -> None:
    run = trec(tmp_path / "run.trec", FIRST)
    arguments = ("eval", run, "--qrels", judged, "--first-stage", run, "--json")
    for test in ("randomisation", "t"):
        found = value(batchrank(*arguments, "--test", test))
        assert len(found["measures"]) == 5
        for entry in found["measures"]:
            assert (entry["change"], entry["p"], entry["ties"]) == (0, 1, 3)
        assert found["most_hurt"] == found["most_helped"] == []


def test_a_summed_measure_changes_by_its_sum(tmp_path: Path, judged: Path) -> None:
    run = trec(tmp_path / "run.trec", {"q1": ["a"], "q2": ["b", "a"], "q3": ["c"]})
    first = trec(tmp_path / "first.trec", FIRST)
    arguments = ("eval", run, "--qrels", judged, "--first-stage", first, "--json")
    (entry,) = value(batchrank(*arguments, "--measure", "NumRet"))["measures"]
    assert (entry["before"], entry["after"], entry["change"]) == (7, 4, pytest.approx(-3))


def test_text_from_outside_is_harmless_and_cut_to_fit(tmp_path: Path) -> None:
    qid = "q" * 80
    judged = qrels(tmp_path / "qrels", {qid: {"a": 1}, "q2": {"a": 1}})
    first = ["b", "a"]
    rows = [
        row(qid, ["a", "b"], first, query="海潮" * 80),
        row("q2", ["a", "b"], first, query="\x1b[31mred\nand\tmore"),
    ]
    told = text(batchrank("eval", jsonl(tmp_path / "out.jsonl", rows), "--qrels", judged))
    assert r"\x1b[31mred and more" in told
    assert "海潮…" in told
    assert "\x1b" not in told


def test_compare_corrects_the_pairs_of_three_runs(tmp_path: Path, judged: Path) -> None:
    runs = [
        trec(tmp_path / f"{name}.trec", ranked)
        for name, ranked in {"one": FIRST, "two": AFTER, "three": {"q3": ["c"]}}.items()
    ]
    arguments = ("compare", *runs, "--qrels", judged, "--measure", "RR@10")
    found = value(batchrank(*arguments, "--json"))
    assert [(pair["first"], pair["second"]) for pair in found["pairs"]] == [(0, 1), (0, 2), (1, 2)]
    assert all(pair["p_holm"] >= pair["p"] for pair in found["pairs"])
    assert [(pair["losses"], pair["ties"]) for pair in found["pairs"]] == [(0, 1), (0, 0), (0, 0)]
    assert found["compared"] == 1
    assert [run["missing"] for run in found["runs"]] == [["q4"], ["q4"], ["q1", "q2", "q4"]]
    assert [run["measures"]["RR@10"] for run in found["runs"]] == pytest.approx([1 / 3, 1 / 3, 1])
    told = text(batchrank(*arguments))
    assert f"B: {runs[1]}" in told.replace("\n  ", "")
    assert "C lacks 3 judged queries, they are left out: q1, q2, q4" in told
    assert "(Holm)" in told


def test_what_a_side_lacks_is_no_change(tmp_path: Path, judged: Path) -> None:
    whole = trec(tmp_path / "whole", AFTER)
    part = trec(tmp_path / "part", {"q2": AFTER["q2"]})
    for sides in ((part, whole), (whole, part)):
        found = value(batchrank("compare", *sides, "--qrels", judged, "--json"))
        assert {pair["change"] for pair in found["pairs"]} == {0}
        told = text(batchrank("compare", *sides, "--qrels", judged))
        assert "by 1 of 4 judged queries, those that are on every side" in told
        assert "lacks 3 judged queries, they are left out: q1, q3, q4" in told
        arguments = ("eval", sides[0], "--qrels", judged, "--first-stage", sides[1])
        found = value(batchrank(*arguments, "--json"))
        assert {entry["change"] for entry in found["measures"]} == {0}
        assert all(entry["before"] == entry["after"] for entry in found["measures"])
    # Beside nothing it is worth what trec_eval -c says.
    alone = value(batchrank("eval", part, "--qrels", judged, "--measure", "RR@10", "--json"))
    assert alone["measures"][0]["after"] == pytest.approx(1 / 4)
    assert "they count 0: q1, q3, q4" in text(batchrank("eval", part, "--qrels", judged))


def test_runs_with_no_query_in_all_of_them_are_compared_by_two(
    tmp_path: Path, judged: Path
) -> None:
    pairs = (("q1", "q2"), ("q2", "q3"), ("q1", "q3"))
    runs = [trec(tmp_path / "".join(one), {qid: AFTER[qid] for qid in one}) for one in pairs]
    told = refusal(batchrank("compare", *runs, "--qrels", judged))
    assert "no judged query that is in all of them" in told
    assert batchrank("compare", *runs[:2], "--qrels", judged).code == 0


def test_compare_of_two_runs_shows_who_won_where(tmp_path: Path, judged: Path) -> None:
    one, two = trec(tmp_path / "one", FIRST), trec(tmp_path / "two", AFTER)
    told = text(batchrank("compare", one, two, "--qrels", judged))
    assert "most hurt by nDCG@10:\nqid       A       B   change\nq1 " in told
    assert "Holm" not in told


def test_compare_without_judgements_says_how_alike_runs_are(tmp_path: Path) -> None:
    one = trec(tmp_path / "one", {"q1": ["a", "b", "c"], "q2": ["a"], "q3": ["a", "b"]})
    two = trec(tmp_path / "two", {"q1": ["c", "b", "a"], "q2": ["a"], "q4": ["a"]})
    found = value(batchrank("compare", one, two, "--json", "--cutoff", "2"))
    (pair,) = found["likeness"]
    # q1: one of the best two in both, the order reversed; q2: the same single document.
    assert pair["overlap"] == pytest.approx((0.5 + 1) / 2)
    assert pair["tau"] == -1
    assert pair["by_query"].keys() == {"q1", "q2"}
    told = text(batchrank("compare", one, two))
    assert "A lacks 1 query of another run: q4" in told
    assert "B lacks 1 query of another run: q3" in told


@pytest.mark.parametrize("flags", [(), ("--qrels", "judged"), ("--qrels", "judged", "--json")])
def test_runs_of_other_queries_are_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    trec(Path("one"), {"q1": ["a", "b"], "q2": ["a"]})
    trec(Path("two"), {"q2": ["a", "c"], "q3": ["c"]})
    trec(Path("three"), {"q3": ["a", "c"]})
    qrels(Path("judged"), {qid: {"a": 1} for qid in ("q1", "q2", "q3")})
    assert batchrank("compare", "one", "two", *flags).code == 0
    for runs in (("one", "three"), ("one", "two", "three")):
        ended = batchrank("compare", *runs, *flags)
        assert (ended.code, bool(ended.out)) == (2, "--json" in flags)
        assert "'one' ('q1', …) and 'three' ('q3', …) have no" in ended.err
        assert "query in common" in ended.err


def test_wrong_use_is_said(tmp_path: Path, judged: Path, output: Path) -> None:
    run = trec(tmp_path / "run", FIRST)
    other = trec(tmp_path / "other", {"zz": ["a"]})
    spec = tmp_path / "job.toml"
    spec.write_text("window_size = 10\n")
    assert "'other' ranks no query" in refusal(batchrank("eval", other, "--qrels", judged)).replace(
        f"{tmp_path}/", ""
    )
    assert "use randomisation or t" in refusal(
        batchrank("eval", run, "--qrels", judged, "--test", "z")
    )
    assert "is no store" in refusal(batchrank("eval", run, "--qrels", judged, "--run", "1"))
    assert "has no [cost]" in refusal(batchrank("eval", run, "--qrels", judged, "--job", spec))
    spec.write_text("[cost]\ngpu_hours = 2\n")
    assert "did you mean 'gpu_hour'" in refusal(
        batchrank("eval", run, "--qrels", judged, "--job", spec)
    )
    spec.write_text("[cost]\ngpu_hour = 2\n")
    assert "is none" in refusal(batchrank("eval", output, "--qrels", judged, "--job", spec))
    assert "2 to 26 runs" in refusal(batchrank("compare", run))
    assert "give --qrels" in refusal(batchrank("compare", run, run, "--measure", "P@1"))


def test_without_the_extra_its_name_is_said(
    tmp_path: Path, judged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ir_measures", None)
    run = trec(tmp_path / "run", FIRST)
    assert "pip install 'batchrank[eval]'" in refusal(batchrank("eval", run, "--qrels", judged))
    assert "overlap@10" in text(batchrank("compare", run, run))
