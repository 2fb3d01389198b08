"""`label` writes weak judgements, marks some for a person, and takes the corrected ones back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from batchrank.formats.trec import read_qrels
from scripts.judge import JudgeConfig, JudgeServer, Knowledge
from tests.choosing.conftest import asked
from tests.cli.running import Row, batchrank, gain, knowledge, rows_of, serving, windows

SAMPLE = 3
Labels = list[dict[str, Any]]


@pytest.fixture
def server(rows: list[Row]) -> Iterator[JudgeServer]:
    """A judge whose gains are grades from 0 to 3; of ten it then gives 2, 4, 6 and 8."""
    known = knowledge(rows)
    grades = {
        qid: {docid: float(round(3 * value)) for docid, value in gains.items()}
        for qid, gains in known.gains.items()
    }
    known = Knowledge(known.documents, known.queries, grades)
    with serving(JudgeServer(JudgeConfig(kind="vllm"), known)) as running:
        yield running


@pytest.fixture
def labelled(source: Path, server: JudgeServer) -> Path:
    """Weak judgements for three queries; beside them the file for a person."""
    asked("label", source, "-o", "weak.qrels", "--sample", SAMPLE, "--base-url", server.url)
    return Path("weak.check.jsonl").absolute()


def line(**changes: object) -> bytes:
    """A line of a file to check, with these values in place of its own."""
    one = {"check": True, "corrected": None, "grade": 1, "query": "q", "title": "", "text": "t"}
    return orjson.dumps({**one, "qid": "q1", "docid": "d1", **changes}) + b"\n"


def corrected(path: Path, change: dict[int, int]) -> Path:
    """The file with a person's grades, by line, from 0."""
    labels: Labels = rows_of(path)
    for line, grade in change.items():
        labels[line]["corrected"] = grade
    path.write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in labels))
    return path


def test_grades_and_a_sample_to_check(labelled: Path, server: JudgeServer, source: Path) -> None:
    labels: Labels = rows_of(labelled)
    # The twenty best of each query.
    assert len(labels) == SAMPLE * 20
    assert [one["check"] for one in labels] == [True] * 12 + [False] * 48
    qrels = read_qrels(Path("weak.qrels"))
    for one in labels:
        assert list(one) == [
            *("check", "corrected", "grade", "query", "title", "text", "qid", "docid")
        ]
        level = round(3 * gain(one["qid"], one["docid"]))
        assert one["grade"] == (0, 1, 1, 2)[level]
        assert qrels[one["qid"]][one["docid"]] == one["grade"]
        assert one["query"]
        assert one["text"]
    assert {one["grade"] for one in labels} == {0, 1, 2}

    # The same again costs nothing, and a person's work is not written over.
    calls = len(windows(server))
    again = ("label", source, "-o", "weak.qrels", "--sample", SAMPLE, "--base-url", server.url)
    text = asked(*again).out.decode()
    assert len(windows(server)) == calls
    assert "60 weak judgements for 3 queries" in text
    corrected(labelled, {0: 0})
    refused = batchrank(*again)
    assert (refused.code, "holds a person's grades" in refused.err) == (2, True)


def test_what_a_person_corrected_comes_back_as_qrels(labelled: Path) -> None:
    weak = rows_of(labelled)
    # Eleven of the twelve are looked at; the first is found to be wrong.
    wrong = (weak[0]["grade"] + 1) % 3
    file = corrected(labelled, {0: wrong, **{line: weak[line]["grade"] for line in range(1, 11)}})
    found = asked("label", "--corrected", file, "-o", "judged.qrels", "--json").json
    assert (found["checked"], found["unchecked"]) == (11, 1)
    assert found["share"] == pytest.approx(10 / 11)
    counts = [sum(row) for row in found["table"]]
    columns = [sum(column) for column in zip(*found["table"], strict=True)]
    chance = sum(a * b for a, b in zip(counts, columns, strict=True)) / 11**2
    assert found["kappa"] == pytest.approx((10 / 11 - chance) / (1 - chance))

    qrels, before = read_qrels(Path("judged.qrels")), read_qrels(Path("weak.qrels"))
    first = weak[0]
    assert qrels[first["qid"]].pop(first["docid"]) == wrong
    before[first["qid"]].pop(first["docid"])
    assert qrels == before
    text = asked("label", "--corrected", file, "-o", "judged.qrels").out.decode()
    assert "11 judgements checked: 91% alike, Cohen's kappa 0." in text
    assert "1 marked ones were not checked" in text


def test_one_grade_alone_says_nothing_beyond_chance(labelled: Path) -> None:
    labels = rows_of(labelled)
    same = {line: 2 for line, one in enumerate(labels) if one["grade"] == 2}
    file = corrected(labelled, same)
    found = asked("label", "--corrected", file, "-o", "judged.qrels", "--json").json
    assert (found["share"], found["kappa"]) == (1, None)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            b'{"check": true, "corrected": 3, "grade": 1, "query": "q", "title": "", "text": "t", '
            b'"qid": "q1", "docid": "d1"}',
            "'corrected' is 3, no grade: write 0, 1 or 2, or null",
        ),
        (
            b'{"check": true, "corrected": null, "grade": 1, "query": "q", "title": "", '
            b'"text": "t", "qid": "q1", "docid": "d1"}',
            "no label has a person's grade",
        ),
        (b'{"qid": "q1"}', "not a line of `batchrank label`"),
        (b"[1]", "not a line of `batchrank label`"),
        (b"torn", "not a line of `batchrank label`: not JSON"),
        (b"{}", "line 1: not a line of `batchrank label`: 'check' is missing"),
        (line(grade=None), "'grade' is null, no grade: write 0, 1 or 2"),
        (line(corrected=True), "'corrected' is true, no grade"),
        (line(corrected=1.0), "'corrected' is 1.0, no grade"),
        (line(corrected="1"), "'corrected' is '1', no grade"),
        (line(qid=7), "'qid' can't be 7"),
        (line(check=1), "'check' can't be 1"),
        (line(note="why"), "unknown key 'note'"),
        (
            line(corrected=1) + line(corrected=2),
            "line 2: document 'd1' of query 'q1' stands on line 1 too: remove one of them",
        ),
    ],
)
def test_a_file_that_can_not_be_taken_back(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "check.jsonl").write_bytes(content)
    result = batchrank("label", "--corrected", "check.jsonl", "-o", "judged.qrels")
    assert (result.code, said in result.err) == (2, True), result.err
    assert not Path("judged.qrels").exists()


def test_nothing_has_to_be_checked(source: Path, server: JudgeServer) -> None:
    given = ("label", source, "-o", "weak.qrels", "--sample", 1, "--base-url", server.url)
    text = asked(*given, "--check", 0).out.decode()
    assert "none is marked for a person (--check 0); all are in weak.check.jsonl" in text


def test_label_makes_or_takes_back() -> None:
    result = batchrank("label", "-o", "weak.qrels")
    assert (result.code, "label takes QUERIES" in result.err) == (2, True)
