"""A check counts what is in an input and names the first lines of each trouble."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from batchrank.formats.check import CheckReport, check_lines
from batchrank.formats.lines import RawLine
from batchrank.formats.requests import DOCID_REPEATS, SCORES_RISE


def check(*values: object) -> CheckReport:
    """Check one line a value; bytes are a line as they stand."""
    lines = [
        RawLine(number, value if isinstance(value, bytes) else json.dumps(value).encode())
        for number, value in enumerate(values, 1)
    ]
    return check_lines(lines[start : start + 2] for start in range(0, len(lines), 2))


def request(qid: str, *documents: str) -> dict[str, Any]:
    return {"qid": qid, "query": "flea", "documents": list(documents)}


def test_counts_of_a_clean_input() -> None:
    report = check(
        request("1"),
        request("2", "x"),
        request("3", "x", "", "longest"),
        request("4", "", " "),
        request("5", *"abcdef"),
    )
    assert (report.read, report.queries, report.repeats, report.failures) == (5, 5, 0, 0)
    assert [report.candidates_at(share) for share in (0, 0.5, 1)] == [0, 2, 6]
    assert report.empty_texts == 3
    assert report.nothing_to_rank == 3
    assert (report.longest, report.longest_where) == (7, (3, "3"))


def test_another_line_with_a_qid_fails_and_a_repeat_does_not() -> None:
    report = check(request("1", "x"), request("1", "x"), request("1", "y"), request("2", "x"))
    assert (report.queries, report.repeats, report.failures) == (2, 1, 1)
    ((number, reason),) = report.failed["duplicate"].examples
    assert number == 3
    assert "'1' of line 3 already stands in line 1" in reason


def test_a_failed_line_does_not_take_its_qid() -> None:
    report = check({"qid": "1", "query": "a"}, request("1", "x"))
    assert (report.queries, report.failures) == (1, 1)
    assert "duplicate" not in report.failed


def test_failures_are_counted_by_kind_with_the_first_as_examples() -> None:
    report = check(*[b"{"] * 5, request("1", "x"), {"query": "a", "candidates": []})
    assert report.failed["json"].count == 5
    assert [number for number, _ in report.failed["json"].examples] == [1, 2, 3]
    assert report.failed["qid"].examples[0][0] == 7
    said = report.lines()
    assert said[0] == "1 query in 7 lines, 0 repeated word for word, 6 failed"
    assert "failed, json: 5 lines" in said
    assert "  and 2 more" in said


def test_warnings_are_counted_by_sentence() -> None:
    rising = [{"docid": n, "text": "x", "score": n} for n in (1, 2)]
    repeated = [{"docid": 1, "text": "x"}] * 2
    report = check(
        request("1", "x"),
        {"qid": "2", "query": "a", "candidates": rising},
        {"qid": "3", "query": "a", "candidates": rising},
        {"qid": "4", "query": "a", "candidates": repeated},
    )
    counts = {sentence: finding.count for sentence, finding in report.warnings.items()}
    assert counts == {SCORES_RISE: 2, DOCID_REPEATS: 1}
    assert f"warning, 2 lines (first line 2): {SCORES_RISE}" in report.lines()


def test_the_report_for_a_person() -> None:
    assert check(request("1", "x", ""), request("2", "y", "z"), b"5").lines() == [
        "2 queries in 3 lines, 0 repeated word for word, 1 failed",
        "candidates a query: 2 at least, 2 in the middle, 2 at most",
        "longest document: 1 character ('1' in line 1)",
        "1 document without text",
        "failed, shape: 1 line",
        '  line 3: The line is 5, expected {"query": {"qid", "text"}, '
        '"candidates": [{"docid", "doc": {"text"}}]}.',
    ]


def test_the_report_for_a_machine() -> None:
    report = check(request("1", "x", "yy"), b"{")
    ((_, reason),) = report.failed["json"].examples
    assert json.loads(json.dumps(report.as_dict())) == {
        "lines": 2,
        "queries": 1,
        "repeats": 0,
        "failed": {"json": {"count": 1, "examples": [{"line": 2, "reason": reason}]}},
        "warnings": {},
        "candidates": {"min": 2, "median": 2, "max": 2},
        "empty_texts": 0,
        "nothing_to_rank": 0,
        "longest_document": 2,
    }


def test_an_input_without_a_usable_line_has_a_report() -> None:
    report = check(b"{", b"[]")
    assert report.lines()[0].startswith("0 queries in 2 lines")
    assert report.as_dict()["candidates"] == {"min": 0, "median": 0, "max": 0}


@given(sizes=st.lists(st.integers(0, 30), min_size=1, max_size=20))
def test_the_middle_is_the_lower_median(sizes: list[int]) -> None:
    report = check(*[request(str(n), *["x"] * size) for n, size in enumerate(sizes)])
    ordered = sorted(sizes)
    assert report.candidates_at(0) == ordered[0]
    assert report.candidates_at(0.5) == ordered[(len(sizes) - 1) // 2]
    assert report.candidates_at(1) == ordered[-1]


@given(
    data=st.lists(
        st.binary(max_size=50) | st.sampled_from([b'{"qid":1,"query":"a","documents":["x"]}'])
    )
)
def test_every_line_is_counted_once(data: list[bytes]) -> None:
    report = check(*data)
    assert report.read == len(data) == report.queries + report.repeats + report.failures
