"""The shared `input` cases, as far as reading and writing go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from batchrank.errors import LineError
from batchrank.formats.check import check_lines
from batchrank.formats.lines import RawLine, read_lines
from batchrank.formats.requests import DOCID_REPEATS, ParsedLine, parse_request
from batchrank.formats.rows import Row, encode_jsonl, encode_trec
from tests.formats.ranked import ranked_docs

OUTCOMES: dict[str, dict[int, str]] = {
    "input-002": {1: "ok", 2: "ok"},
    "input-003": {2: "ok", 4: "ok"},
    "input-005": {1: "encoding"},
    "input-006": {1: "ok", 2: "json", 3: "ok"},
    "input-007": {1: "ok", 2: "ok"},
    "input-008": {1: "ok"},
    "input-009": {1: "ok"},
    "input-010": {1: "ok"},
    "input-011": {1: "ok"},
    "input-012": {1: "ok"},
    "input-013": {1: "ok"},
    "input-014": {1: "text"},
    "input-015": {1: "qid"},
    "input-021": {1: "ok"},
    "input-023": {1: "ok"},
    "input-030": {1: "ok"},
}
"""By case and line number: `ok` or the kind of the error."""

BUILT_ELSEWHERE = {
    "input-026": "test_one_long_word",
    "input-028": "test_lines.py, packing is told by content",
    "input-029": "test_lines.py, standard input",
    "input-033": "test_many_candidates",
    "input-034": "windows, in the tests of the strategies",
}
"""Cases that say how to build an input in place of giving it."""


@pytest.fixture(scope="module")
def cases(shared_data: Path) -> dict[str, Any]:
    text = (shared_data / "cases.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.split("\n") if line]
    return {row["id"]: row["payload"] for row in rows if row["kind"] == "input"}


def lines_of(folder: Path, payload: Any) -> list[RawLine]:
    path = folder / "queries.jsonl"
    if isinstance(payload, dict):
        path.write_bytes(bytes.fromhex(payload["bytes_hex"]))
    else:
        path.write_bytes(payload.encode())
    return [line for block in read_lines(str(path)) for line in block]


def parsed(folder: Path, payload: Any) -> ParsedLine:
    return parse_request(lines_of(folder, payload)[0].data)


def row_of(line: ParsedLine) -> Row:
    docs = line.request.candidates
    ranking = ranked_docs(tuple(doc.docid for doc in docs), docs)
    query = line.request.query
    return Row(query.qid, query.text, "ok", ranking, {}, 0, 0, 0, "m", "t", None, 1)


def test_every_case_has_an_expected_outcome(cases: dict[str, Any]) -> None:
    assert set(cases) == OUTCOMES.keys() | BUILT_ELSEWHERE.keys()


@pytest.mark.parametrize("case", OUTCOMES)
def test_each_line_is_read_or_refused(tmp_path: Path, cases: dict[str, Any], case: str) -> None:
    outcomes: dict[int, str] = {}
    for line in lines_of(tmp_path, cases[case]):
        try:
            request = parse_request(line.data).request
            assert "\r" not in request.query.text
            outcomes[line.number] = "ok"
        except LineError as error:
            outcomes[line.number] = error.kind
    assert outcomes == OUTCOMES[case]


def test_two_lines_with_one_qid(tmp_path: Path, cases: dict[str, Any]) -> None:
    report = check_lines([lines_of(tmp_path, cases["input-007"])])
    ((number, reason),) = report.failed["duplicate"].examples
    assert number == 2
    assert "line 2" in reason
    assert "line 1" in reason


def test_integers_become_text(tmp_path: Path, cases: dict[str, Any]) -> None:
    row = json.loads(encode_jsonl(row_of(parsed(tmp_path, cases["input-008"]))))
    assert row["qid"] == "264014"
    assert row["ranking"][0]["docid"] == "5611210"
    assert row["ranking"][0]["first_stage_score"] == 15.78


def test_a_repeated_docid_is_written_once(tmp_path: Path, cases: dict[str, Any]) -> None:
    line = parsed(tmp_path, cases["input-009"])
    assert line.warnings == (DOCID_REPEATS,)
    assert encode_trec(row_of(line), "t") == b"1 Q0 d1 1 1 t\n"


@pytest.mark.parametrize(("case", "count"), [("010", 0), ("011", 1), ("012", 3), ("013", 2)])
def test_nothing_is_dropped(tmp_path: Path, cases: dict[str, Any], case: str, count: int) -> None:
    line = parsed(tmp_path, cases[f"input-{case}"])
    assert len(json.loads(encode_jsonl(row_of(line)))["ranking"]) == count


def test_the_document_without_text_is_named(tmp_path: Path, cases: dict[str, Any]) -> None:
    with pytest.raises(LineError, match="'d1' has no text"):
        parsed(tmp_path, cases["input-014"])


@pytest.mark.parametrize("case", ["021", "023"])
def test_texts_stay_as_they_are(tmp_path: Path, cases: dict[str, Any], case: str) -> None:
    payload = cases[f"input-{case}"]
    texts = [item["doc"]["text"] for item in json.loads(payload)["candidates"]]
    documents = parsed(tmp_path, payload).request.candidates
    assert [document.text for document in documents] == texts


def test_white_space_in_identifiers(tmp_path: Path, cases: dict[str, Any]) -> None:
    row = row_of(parsed(tmp_path, cases["input-030"]))
    assert json.loads(encode_jsonl(row))["ranking"][0]["docid"] == "doc\t1"
    with pytest.raises(LineError, match="q 1"):
        encode_trec(row, "t")


def test_one_long_word() -> None:
    data = json.dumps({"qid": "1", "query": "a", "documents": ["A" * 100_000]}).encode()
    (document,) = parse_request(data).request.candidates
    assert document.text == "A" * 100_000


def test_many_candidates() -> None:
    data = json.dumps({"qid": "1", "query": "a", "documents": ["x"] * 1000}).encode()
    assert encode_trec(row_of(parse_request(data)), "t").count(b"\n") == 1000
