"""Every accepted shape gives the same request; everything else gives a LineError that helps."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchrank.errors import LineError
from batchrank.formats.requests import (
    DOCID_REPEATS,
    SCORES_MISSING,
    SCORES_RISE,
    parse_request,
    salvage,
)
from batchrank.values import Document, Query, Request

QUERY = {"qid": "q1", "text": "how long does a flea live"}


def parse(value: object) -> Request:
    return parse_request(json.dumps(value).encode()).request


def candidate(item: object) -> Document:
    (document,) = parse({"query": QUERY, "candidates": [item]}).candidates
    return document


def failure(value: object) -> LineError:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    with pytest.raises(LineError) as raised:
        parse_request(data)
    message = str(raised.value)
    assert message.endswith(".")
    assert message.isprintable()
    assert len(message) < 400
    return raised.value


def test_the_documented_shape() -> None:
    doc = {"title": "Fleas", "text": "Two months."}
    value = {"query": QUERY, "candidates": [{"docid": "d1", "score": 2, "doc": doc}], "more": [1]}
    assert parse(value) == Request(
        Query("q1", "how long does a flea live"), (Document("d1", "Two months.", "Fleas", 2.0),)
    )


def test_a_plain_query_has_its_qid_beside_it() -> None:
    assert parse({"qid": 7, "query": "a", "candidates": []}) == Request(Query("7", "a"), ())
    assert parse({"qid": "7", "query": {"text": "a"}, "candidates": []}).query == Query("7", "a")


@pytest.mark.parametrize("key", ["text", "segment", "contents", "content", "body", "passage"])
def test_text_keys_inside_doc_and_beside_docid(key: str) -> None:
    assert candidate({"docid": "d", "doc": {key: "x"}}) == Document("d", "x")
    assert candidate({"docid": "d", key: "x"}) == Document("d", "x")
    assert candidate({"docid": "d", key: "x", "title": "T"}) == Document("d", "x", "T")


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"docid": "d", "doc": "x"}, Document("d", "x")),
        ({"docid": "d", "doc": "x", "title": "T"}, Document("d", "x", "T")),
        ({"docid": "d", "title": "T", "doc": {"text": "x"}}, Document("d", "x", "T")),
        ({"docid": "d", "doc": {"title": "T"}}, Document("d", "T")),
        ({"docid": "d", "title": "T"}, Document("d", "T")),
        ({"docid": "d", "doc": {"title": "T", "text": " "}}, Document("d", "T")),
        ({"docid": "d", "doc": {"text": None, "body": "x"}}, Document("d", "x")),
        ({"docid": "d", "doc": ""}, Document("d", "")),
        ({"docid": "d", "doc": {}}, Document("d", "")),
        ({"docid": "d", "doc": None}, Document("d", "")),
        ({"docid": "d", "text": None}, Document("d", "")),
        ({"docid": "d", "text": None, "title": "T"}, Document("d", "T")),
        ({"docid": "d", "doc": {"text": None, "url": "u"}}, Document("d", "")),
        ({"docid": "d", "text": ""}, Document("d", "")),
        ({"docid": "d", "text": " \n"}, Document("d", " \n")),
        ({"docid": "d", "doc": None, "text": "x"}, Document("d", "x")),
        ({"docid": "d", "doc": {}, "text": "x"}, Document("d", "x")),
        ({"docid": -3, "text": "x"}, Document("-3", "x")),
        ({"docid": "d", "text": "a\0b"}, Document("d", "a\0b")),
        ({"docid": "d", "text": "x", "score": None}, Document("d", "x")),
        ({"docid": "d", "text": "x", "score": -1}, Document("d", "x", score=-1.0)),
        (
            {"path": "src/a.py", "start_line": 12, "content": "def f(): ..."},
            Document("src/a.py:12", "def f(): ...", "src/a.py:12"),
        ),
        (
            {"path": "src/a.py", "content": "x", "score": 0.5},
            Document("src/a.py", "x", "src/a.py", 0.5),
        ),
        (
            {"docid": "chunk-1", "path": "src/a.py", "start_line": 0, "content": "x"},
            Document("chunk-1", "x", "src/a.py:0"),
        ),
        ({"path": "a.py", "content": "x", "title": "T"}, Document("a.py", "x", "T")),
    ],
)
def test_shapes_of_a_candidate(item: object, expected: Document) -> None:
    assert candidate(item) == expected


@pytest.mark.parametrize("key", ["candidates", "documents"])
def test_plain_strings_are_numbered_from_one(key: str) -> None:
    got = parse({"query": QUERY, key: ["x", "", "z"]})
    assert got.candidates == (Document("1", "x"), Document("2", ""), Document("3", "z"))


def test_a_repeated_docid_keeps_the_first_and_warns_once() -> None:
    items = [{"docid": docid, "text": text} for docid, text in (("1", "x"), (1, "y"), ("1", "z"))]
    parsed = parse_request(json.dumps({"query": QUERY, "candidates": items}).encode())
    assert parsed.request.candidates == (Document("1", "x"),)
    assert parsed.warnings == (DOCID_REPEATS,)


@pytest.mark.parametrize(
    ("scores", "warned"),
    [
        ([3, 2, 2, 1], False),
        ([3, None, 2], False),
        ([None, 1], False),
        ([1, 2], True),
        ([2, None, 3], True),
        ([-2, -1, 0], True),
    ],
)
def test_rising_scores_warn_and_do_not_sort(scores: list[float | None], warned: bool) -> None:
    items = [
        {"docid": number, "text": "x", "score": score} for number, score in enumerate(scores, 1)
    ]
    parsed = parse_request(json.dumps({"query": QUERY, "candidates": items}).encode())
    assert [document.score for document in parsed.request.candidates] == scores
    assert parsed.warnings == ((SCORES_RISE,) if warned else ())


NO_TEXT = {"query": QUERY, "candidates": [{"docid": "good", "text": "x"}, {"docid": "d9"}]}


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        (b"", "json", "not JSON"),
        (b'{"query": {"qid": "1"}', "json", "not JSON"),
        (b'{"query": tru\x1b[2J}', "json", "\\x1b"),
        (b'{"a": NaN}', "shape", "'a'"),
        (b'{"a": nan}', "json", "not JSON"),
        (b'{"a": NaN, "b": tru', "json", "not JSON"),
        (b'{"a": NaN, "b": ' + b"[" * 100_000, "json", "recursion"),
        (b'{"a": NaN, "b": ' + b"9" * 5000 + b"}", "shape", "'a', 'b'"),
        (b'{"a": NaN, "b": "\\ud800"}', "json", "surrogates"),
        (b'{"query": {"qid": NaN, "text": "a"}}', "qid", "NaN, expected"),
        (b'{"query": {"qid": "1", "text": NaN}}', "query", "NaN, expected"),
        (b'{"qid": "1", "query": "a", "documents": [], "weight": NaN}', "weight", "NaN, expected"),
        (b'{"qid": "1", "query": "a", "documents": [], "weight": 1e999}', "weight", "Infinity"),
        (b"[" * 100_000, "json", "depth"),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, "json", "depth"),
        (b'{"a": "\xff"}', "encoding", "Byte 8 (0xff) is not UTF-8"),
        (b'{"a": "\xed\xa0\x80"}', "encoding", "not UTF-8"),
        (b'{"a": "\\ud800"}', "encoding", "cut in two"),
        (b'{"a": "\\udc00x"}', "encoding", "cut in two"),
        (b"[]", "shape", "a list"),
        (b'"text"', "shape", "'text'"),
        (b"null", "shape", "null"),
        ({}, "shape", '"query"'),
        ({"hits": [], "q": 1}, "shape", "'hits', 'q'"),
        ({"query": QUERY}, "shape", 'no "candidates"'),
        ({"query": QUERY, "candidates": None}, "shape", '"candidates" is null'),
        ({"query": QUERY, "documents": {"a": 1}}, "shape", '"documents" is an object'),
        ({"query": QUERY, "candidates": ["x", 5]}, "shape", "Candidate 2 is 5"),
        ({"query": "a", "candidates": ["x", "y"]}, "qid", 'add "qid" beside "query"'),
        ({"query": {"text": "a"}, "candidates": []}, "qid", 'beside its "text"'),
        ({"query": {"qid": 1.0, "text": "a"}, "candidates": []}, "qid", "1.0"),
        ({"query": {"qid": True, "text": "a"}, "candidates": []}, "qid", "true"),
        ({"query": {"qid": "", "text": "a"}, "candidates": []}, "qid", "''"),
        ({"query": {"qid": [1], "text": "a"}, "candidates": []}, "qid", "a list"),
        ({"query": {"qid": "q"}, "candidates": []}, "query", "null"),
        ({"query": ["a"], "qid": "q", "candidates": []}, "query", "a list"),
        ({"query": " ", "qid": "q", "candidates": []}, "query", "empty"),
        ({"query": QUERY, "candidates": [{"id": "x"}]}, "docid", 'Candidate 1 has no "docid"'),
        ({"query": QUERY, "candidates": [{"docid": None}]}, "docid", "an empty docid"),
        ({"query": QUERY, "candidates": [{"docid": False}]}, "docid", "false"),
        ({"query": QUERY, "candidates": [{"docid": 1.5}]}, "docid", "1.5"),
        ({"query": QUERY, "candidates": [{"path": 3.5, "content": ""}]}, "docid", "path"),
        (
            {"query": QUERY, "candidates": [{"path": "a", "start_line": "", "content": ""}]},
            "docid",
            "start_line",
        ),
        (NO_TEXT, "text", "'d9' has no text"),
        (
            {"query": QUERY, "candidates": [{"docid": "d9", "doc": {"abstract": "x"}}]},
            "text",
            "'abstract'",
        ),
        ({"query": QUERY, "candidates": [{"docid": "d9", "doc": ["x"]}]}, "text", "a list"),
        ({"query": QUERY, "candidates": [{"docid": "d9", "text": 5}]}, "text", "'d9' is 5"),
        ({"query": QUERY, "candidates": [{"docid": "d9", "doc": {"title": 5}}]}, "text", "title"),
        (
            {"query": QUERY, "candidates": [{"docid": "d9", "text": "x", "score": "7"}]},
            "score",
            "'7'",
        ),
        (
            {"query": QUERY, "candidates": [{"docid": "d9", "text": "x", "score": True}]},
            "score",
            "true",
        ),
        ({"query": QUERY, "candidates": [{"docid": "\x1b]0;" + "x" * 500, "doc": 1}]}, "text", "…"),
    ],
)
def test_what_is_wrong_is_said(value: object, kind: str, said: str) -> None:
    error = failure(value)
    assert error.kind == kind
    assert said in str(error)


@pytest.mark.parametrize("large", ["18446744073709551616", "-9223372036854775809", "9" * 5000])
def test_an_integer_beyond_64_bits_is_read_as_ever_beside_a_nan(large: str) -> None:
    lines = [
        f'{{"query": "a", "qid": 1, "sum": {large}, "documents": ["x"], "of": {token}}}'
        for token in ("NaN", "1e999", "0")
    ]
    assert len({parse_request(line.encode()).request for line in lines}) == 1


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_a_score_that_is_no_number_is_null_and_counts(token: str) -> None:
    first = f'{{"docid": "é", "text": "x", "score": {token}}}'
    items = f'{first}, {{"docid": "d", "text": "y", "score": 2}}'
    line = f'{{"query": {{"qid": "ü", "text": "a"}}, "candidates": [{items}, {items}]}}'
    parsed = parse_request(line.encode())
    assert parsed.request == Request(
        Query("ü", "a"), (Document("é", "x"), Document("d", "y", score=2.0))
    )
    assert set(parsed.warnings) == {SCORES_MISSING, DOCID_REPEATS}


GOOD = {"docid": "a", "text": "x", "score": 3}


@pytest.mark.parametrize(
    ("value", "known"),
    [
        (b'{"query": {"qid": "7", "text": "tor', Request(Query("7", ""), ())),
        (b"[1]", Request(Query("", ""), ())),
        ({"query": {"qid": "7", "text": 5}, "candidates": [GOOD]}, ("7", "", ["a"], [3.0])),
        ({"query": {"text": "a"}, "candidates": [GOOD]}, ("", "a", ["a"], [3.0])),
        ({"query": "a", "qid": 7, "candidates": "x"}, ("7", "a", [], [])),
        (
            {"query": QUERY, "candidates": [GOOD, {"docid": "b", "score": 2}, {"docid": "a"}]},
            ("q1", QUERY["text"], ["a", "b"], [3.0, 2.0]),
        ),
        (
            {"query": QUERY, "candidates": [{"docid": "b", "score": "high"}, 5, GOOD, {"x": 1}]},
            ("q1", QUERY["text"], ["b", "a"], [None, 3.0]),
        ),
        (
            {"query": QUERY, "documents": ["x", 5, "z"]},
            ("q1", QUERY["text"], ["1", "3"], [None, None]),
        ),
    ],
)
def test_what_a_line_that_fails_still_tells(
    value: object, known: Request | tuple[str, str, list[str], list[float | None]]
) -> None:
    failure(value)
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    if isinstance(known, tuple):
        qid, text, docids, scores = known
        found = zip(docids, scores, strict=True)
        documents = tuple(Document(docid, "", score=score) for docid, score in found)
        known = Request(Query(qid, text), documents)
    assert salvage(data) == known


@pytest.mark.parametrize(
    ("value", "qid"),
    [
        (NO_TEXT, "q1"),
        ({"query": {"qid": "7"}, "candidates": []}, "7"),
        ({"query": "", "qid": 7, "candidates": []}, "7"),
        (b'{"query": {"qid": "a\\"b", "text": NaN}}', 'a"b'),
        (b'{"qid" : -12, "query": tru', "-12"),
        (b'{"query": {"qid": "1", "text": "\xff"}}', "1"),
        (b'{"query": {"qid": "\xff"}}', None),
        (b'{"query": {"qid": "\\ud800"}}', None),
        (b'{"query": {"qid": "torn', None),
        ({"query": "a", "candidates": []}, None),
    ],
)
def test_the_qid_is_named_where_it_can_be_read(value: object, qid: str | None) -> None:
    assert failure(value).qid == qid


texts = st.text(st.characters(codec="utf-8"), max_size=30)
words = texts.filter(lambda text: bool(text.strip()))
identifiers = words | st.integers(-(2**63), 2**64 - 1)
scores = st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9)


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """A request whose documents have text, so that every shape can hold it."""
    docids = draw(st.lists(identifiers.map(str), max_size=6, unique=True))
    documents = tuple(
        Document(
            docid,
            draw(words),
            draw(st.none() | words),
            None if (score := draw(scores)) is None else float(score),
        )
        for docid in docids
    )
    return Request(Query(str(draw(identifiers)), draw(words)), documents)


def shaped(draw: st.DrawFn, document: Document) -> dict[str, Any]:
    key = draw(st.sampled_from(["text", "segment", "contents", "content", "body", "passage"]))
    content: dict[str, Any] = {key: document.text}
    if document.title is not None or draw(st.booleans()):
        content["title"] = document.title
    item: dict[str, Any] = {"docid": document.docid, "unknown": None}
    if document.score is not None or draw(st.booleans()):
        item["score"] = document.score
    match draw(st.integers(0, 2)):
        case 0:
            item["doc"] = content
        case 1:
            item |= content
        case _:
            item |= {"doc": document.text, "title": document.title}
    return item


@given(data=st.data(), request_=requests(), ascii_only=st.booleans())
def test_a_request_survives_every_shape(
    data: st.DataObject, request_: Request, ascii_only: bool
) -> None:
    query = request_.query
    line: dict[str, Any] = (
        {"query": {"qid": query.qid, "text": query.text}}
        if data.draw(st.booleans())
        else {"qid": query.qid, "query": query.text}
    )
    line[data.draw(st.sampled_from(["candidates", "documents"]))] = [
        data.draw(st.composite(shaped)(document)) for document in request_.candidates
    ]
    parsed = parse_request(json.dumps(line, ensure_ascii=ascii_only).encode())
    assert parsed.request == request_


KEYS = ["query", "qid", "text", "candidates", "documents", "docid", "doc", "title", "score"]
KEYS += ["path", "start_line", "content"]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=30,
)


@given(data=st.binary() | json_values.map(lambda value: json.dumps(value).encode()))
def test_anything_else_gives_a_request_or_a_line_error(data: bytes) -> None:
    message = ""
    docids: list[str] = []
    try:
        docids = [doc.docid for doc in parse_request(data).request.candidates]
    except LineError as error:
        message = str(error)
    assert message.isprintable()
    assert len(set(docids)) == len(docids)


@pytest.mark.parametrize("place", ["beside", "inside"])
def test_metadata_stands_beside_the_docid_or_in_the_doc(place: str) -> None:
    metadata = {"source": "wiki", "year": 2024, "tags": ["a"], "new": True, "none": None}
    item: dict[str, Any] = {"docid": "d", "doc": {"text": "x"}}
    (item if place == "beside" else item["doc"])["metadata"] = metadata
    assert candidate(item).metadata == {"source": "wiki", "year": 2024}


@pytest.mark.parametrize("metadata", [None, "wiki", [1], 5])
def test_metadata_that_is_no_object_is_none(metadata: object) -> None:
    assert candidate({"docid": "d", "text": "x", "metadata": metadata}).metadata == {}


@pytest.mark.parametrize(
    ("vector", "expected"),
    [
        ([1, 0.5], [1.0, 0.5]),
        ([], []),
        (None, []),
        ("0.5", []),
        ([1, None], []),
        ([1e999, 1], []),
    ],
)
def test_an_embedding_is_a_list_of_finite_numbers_or_nothing(
    vector: object, expected: list[float]
) -> None:
    assert list(candidate({"docid": "d", "text": "x", "embedding": vector}).embedding) == expected
    assert list(candidate({"docid": "d", "doc": {"text": "x", "embedding": vector}}).embedding) == (
        expected
    )


@pytest.mark.parametrize("digits", ["18446744073709551616", "-9223372036854775809", "1" * 40])
@pytest.mark.parametrize("where", ["docid", "qid"])
def test_an_integer_of_more_than_64_bits_is_told_to_be_too_large(digits: str, where: str) -> None:
    ids = {"docid": "1", "qid": "1", where: digits}
    line = (
        f'{{"query": {{"qid": {ids["qid"]}, "text": "x"}}, '
        f'"candidates": [{{"docid": {ids["docid"]}, "text": "y"}}]}}'
    )
    with pytest.raises(LineError, match=r"too large a number.*write it as a string"):
        parse_request(line.encode())
