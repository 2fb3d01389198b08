"""Whatever types Parquet's columns have: what is text or number is read, all else is told."""

from __future__ import annotations

import datetime
import decimal
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from batchrank.errors import LineError
from batchrank.formats.candidates import TEXT_KEYS
from batchrank.formats.lines import RawLine
from batchrank.formats.requests import SCORES_MISSING, parse_request, salvage
from batchrank.formats.sources.source import Source
from batchrank.values import Document, Query, Request
from tests.formats.sources.reading import lines_of

TEXTS = ["q1", "éa", "d1", "ti", "té"]
"""Of two bytes, but for those with an é, as a type of one length needs it."""
READ = ("qid", "query", "docid", "title", "text")
NOW = datetime.datetime(2024, 1, 31, 12, tzinfo=datetime.UTC)


def lines(folder: Path, columns: dict[str, Any]) -> list[RawLine]:
    path = folder / "in.parquet"
    parquet.write_table(pa.table(columns), path)
    return lines_of(Source(str(path)))


def flat(folder: Path, **columns: Any) -> RawLine:
    """The first line of one row a candidate; those not given are usable."""
    count = len(next(iter(columns.values())))
    usual: dict[str, Any] = {name: [name] * count for name in ("qid", "query", "text")}
    usual["docid"] = [f"d{number}" for number in range(count)]
    return lines(folder, {**usual, **columns})[0]


def nested(folder: Path, candidates: object) -> RawLine:
    (line,) = lines(folder, {"qid": ["qid"], "query": ["query"], "candidates": [candidates]})
    return line


def failure(line: RawLine) -> str:
    with pytest.raises(LineError) as raised:
        parse_request(line.data)
    return str(raised.value)


@pytest.mark.parametrize(
    "type_",
    [
        pa.binary(),
        pa.large_binary(),
        pa.binary_view(),
        pa.string_view(),
        pa.large_string(),
        pa.dictionary(pa.int32(), pa.binary()),
        pa.dictionary(pa.int32(), pa.string()),
    ],
    ids=str,
)
def test_every_type_of_text_is_text(tmp_path: Path, type_: pa.DataType) -> None:
    def array(*values: str) -> Any:
        return pa.array([value.encode() for value in values], pa.binary()).cast(type_)

    named = {name: array(text) for name, text in zip(READ, TEXTS, strict=True)}
    wanted = Request(Query("q1", "éa"), (Document("d1", "té", "ti"),))
    (line,) = lines(tmp_path, named)
    assert parse_request(line.data).request == wanted
    inner = pa.StructArray.from_arrays([named[name] for name in READ[2:]], list(READ[2:]))
    offsets = pa.array([0, 1], pa.int32())
    outer = pa.ListArray.from_arrays(offsets, inner)
    (line,) = lines(tmp_path, {"qid": named["qid"], "query": named["query"], "candidates": outer})
    assert parse_request(line.data).request == wanted


def test_binary_of_one_length_is_text_too(tmp_path: Path) -> None:
    line = flat(tmp_path, docid=pa.array([b"d1", b"d2"], pa.binary(2)))
    assert [one.docid for one in parse_request(line.data).request.candidates] == ["d1", "d2"]


@pytest.mark.parametrize("name", READ)
def test_bytes_that_are_no_utf_8_are_a_failed_row_that_names_the_column(
    tmp_path: Path, name: str
) -> None:
    line = flat(tmp_path, **{name: [b"caf\xe9", b"caf\xe9"], "score": [2.0, 1.0]})
    assert failure(line) == f"Row 1, column {name}: byte 4 (0xe9) is not UTF-8."
    known = salvage(line.data)
    assert known.query.text == ("" if name == "query" else "query")
    assert len(known.candidates) == (0 if name == "docid" else 2)


def test_a_nested_value_is_named_by_its_place(tmp_path: Path) -> None:
    documents = [{"docid": b"d1", "text": b"x"}, {"docid": b"d2", "text": b"\xff"}]
    line = nested(tmp_path, documents)
    assert failure(line) == "Row 1, column candidates 2 text: byte 1 (0xff) is not UTF-8."
    assert [one.docid for one in salvage(line.data).candidates] == ["d1", "d2"]


@pytest.mark.parametrize("name", [*READ, "score", "weight"])
@pytest.mark.parametrize("value", [NOW, NOW.date(), NOW.time(), datetime.timedelta(1)], ids=str)
def test_what_is_neither_text_nor_number_is_not_written_as_one(
    tmp_path: Path, name: str, value: object
) -> None:
    said = failure(flat(tmp_path, **{name: [value]}))
    assert said.startswith(f"Row 1, column {name}: a ")
    assert said.endswith("is neither text nor number: cast it.")
    if name in ("docid", "text", "title", "score"):
        said = failure(nested(tmp_path, [{"docid": "d", "text": "x", name: value}]))
        assert said.startswith(f"Row 1, column candidates 1 {name}: a ")


@pytest.mark.parametrize("name", [*READ, "score", "weight"])
@pytest.mark.parametrize("value", [True, [1, 2], {"a": 1}], ids=str)
def test_a_truth_a_list_and_a_struct_are_refused(tmp_path: Path, name: str, value: object) -> None:
    assert ("true" if value is True else "a") in failure(flat(tmp_path, **{name: [value]}))


def test_decimals_are_numbers(tmp_path: Path) -> None:
    scores = [decimal.Decimal("2.50"), None]
    docids = [decimal.Decimal(7), decimal.Decimal(8)]
    line = flat(
        tmp_path,
        score=pa.array(scores, pa.decimal128(10, 2)),
        docid=pa.array(docids, pa.decimal128(18, 0)),
    )
    found = parse_request(line.data).request.candidates
    assert [(one.docid, one.score) for one in found] == [("7", 2.5), ("8", None)]


def test_a_uuid_is_its_text(tmp_path: Path) -> None:
    number = uuid.UUID(int=7)
    storage = pa.array([number.bytes], pa.binary(16))
    docid = pa.ExtensionArray.from_storage(pa.uuid(), storage)
    (document,) = parse_request(flat(tmp_path, docid=docid).data).request.candidates
    assert document.docid == str(number)


def test_where_only_filters_look_dates_are_texts_and_other_things_are_left_out(
    tmp_path: Path,
) -> None:
    line = flat(
        tmp_path,
        day=[NOW.date()],
        source=[b"wiki"],
        picture=[b"\xff\xd8"],
        took=[datetime.timedelta(1)],
        metadata=pa.array([[("lang", "de")]], pa.map_(pa.string(), pa.string())),
    )
    (document,) = parse_request(line.data).request.candidates
    assert document.metadata == {"day": "2024-01-31", "source": "wiki", "lang": "de"}


@pytest.mark.parametrize("key", [*TEXT_KEYS, "doc"])
def test_a_text_that_is_null_is_empty_in_either_layout(tmp_path: Path, key: str) -> None:
    wanted = (Document("d0", "x"), Document("d1", ""))
    documents = [{"docid": "d0", key: "x"}, {"docid": "d1", key: None}]
    assert parse_request(nested(tmp_path, documents).data).request.candidates == wanted
    if key != "doc":
        (line,) = lines(
            tmp_path,
            {"qid": ["q"] * 2, "query": ["a"] * 2, "docid": ["d0", "d1"], key: ["x", None]},
        )
        assert parse_request(line.data).request.candidates == wanted


def test_a_candidate_that_is_null_fails_its_query_in_either_layout(tmp_path: Path) -> None:
    line = nested(tmp_path, [{"docid": "d", "text": "x"}, None])
    assert failure(line) == "Candidate 2 is null, expected an object or a string."
    line = flat(tmp_path, docid=["d", None], text=["x", None])
    assert failure(line) == "Candidate 2 has an empty docid."


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_a_score_that_is_no_number_is_null_and_told(tmp_path: Path, score: float) -> None:
    large = decimal.Decimal(10**25)
    documents = [{"docid": "d", "text": "x", "score": score, "sum": large}]
    hits = pa.array([[{"docid": "d", "content": "x", "score": score, "qid": "qid"}]])
    (of_hits,) = lines(tmp_path, {"query": ["query"], "hits": hits})
    for line in (nested(tmp_path, documents), flat(tmp_path, score=[score]), of_hits):
        parsed = parse_request(line.data)
        assert parsed.request.candidates[0].score is None
        assert parsed.warnings == (SCORES_MISSING,)


def test_a_query_text_that_stands_in_one_row_alone_is_told(tmp_path: Path) -> None:
    line = flat(tmp_path, qid=["q", "q"], query=["a", None])
    assert "different query texts, 'a' and null: write it in each row" in failure(line)
    assert len(salvage(line.data).candidates) == 2
