"""Reads one JSONL line, in any of the accepted shapes, as a request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, NoReturn

import orjson

from batchrank.errors import LineError
from batchrank.formats.lines import MAX_LINE
from batchrank.formats.wording import listed, shown
from batchrank.values import Document, Query, Request

SCORES_RISE = "scores rise: the order of the candidates is the first stage, scores are not used"
DOCID_REPEATS = "a docid stands twice among the candidates: the first is kept"

_TEXT_KEYS = ("text", "segment", "contents", "content", "body", "passage")
_DOC_KEYS = frozenset((*_TEXT_KEYS, "title"))
_SHAPE = '{"query": {"qid", "text"}, "candidates": [{"docid", "doc": {"text"}}]}'
_QID = re.compile(rb'"qid"\s*:\s*("(?:[^"\\]|\\.){1,200}"|-?\d{1,18}\b)')
_NO_NUMBER = re.compile(r"-?(?:NaN|Infinity)")


@dataclass(frozen=True, slots=True)
class ParsedLine:
    """A request and what is odd about it; each warning is a fixed sentence, so they count."""

    request: Request
    warnings: tuple[str, ...] = ()


def parse_request(data: bytes) -> ParsedLine:
    """Read a line as `query` and `candidates` (or `documents`); unknown keys are ignored.

    `query` is `{"qid", "text"}`, or a string beside a top-level `qid`. A candidate is a string
    (docids are then "1".."n"), or an object with `docid`, perhaps `score`, and its text and
    `title` in `doc`, as the string `doc`, or beside `docid`; code has `path` and perhaps
    `start_line`, which make its docid and title. Integers as identifiers become strings. The
    first of candidates with the same docid is kept. `weight` stands beside `query` or in it.

    Raises LineError with kind `json`, `encoding`, `size`, `shape`, `query`, `qid`, `docid`,
    `text`, `score` or `weight`.
    """
    line = _loaded(data)
    if not isinstance(line, dict):
        raise LineError("shape", f"The line is {shown(line)}, expected {_SHAPE}.")
    query = _query(line)
    try:
        return _request(query, line)
    except LineError as error:
        error.qid = query.qid
        raise


def repeated_qid(qid: str, number: int, first: int) -> LineError:
    """The error of line `number`, whose qid stands in line `first` with other content."""
    return LineError(
        "duplicate",
        f"The qid {shown(qid)} of line {number} already stands in line {first} "
        "with other content: give one of them another qid.",
        qid,
    )


def _loaded(data: bytes) -> Any:
    if len(data) > MAX_LINE:
        _fail(data, "size", f"The line is longer than {MAX_LINE >> 20} MB: shorten its documents.")
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        _explain(data, error)


def _explain(data: bytes, error: orjson.JSONDecodeError) -> NoReturn:
    """Say in what way a line is no JSON."""
    try:
        text = data.decode()
    except UnicodeDecodeError as wrong:
        byte = data[wrong.start]
        _fail(data, "encoding", f"Byte {wrong.start + 1} (0x{byte:02x}) is not UTF-8.")
    column = error.pos + 1
    if "surrogate" in error.msg:
        _fail(
            data,
            "encoding",
            f"A \\ud800-\\udfff escape stands without its other half near column {column}: "
            "a character was cut in two.",
        )
    # The parser points at the token or, after a minus, at the character behind it.
    if token := _NO_NUMBER.search(text, max(0, error.pos - 1), error.pos + 9):
        _fail(data, "json", f"{token[0]} at column {column} is not JSON: write a number or null.")
    near = shown(text[max(0, error.pos - 20) : error.pos + 20])
    _fail(data, "json", f"The line is not JSON: {error.msg}, near {near}.")


def _fail(data: bytes, kind: str, message: str) -> NoReturn:
    """Raise for a line that can't be parsed, with the qid if one can still be made out."""
    qid = None
    if found := _QID.search(data, 0, 4096):
        try:
            qid = str(orjson.loads(found[1]))
        except orjson.JSONDecodeError:
            qid = None
    raise LineError(kind, message, qid)


def _query(line: Mapping[str, Any]) -> Query:
    if "query" not in line:
        raise LineError(
            "shape", f'There is no "query" among the keys {listed(line)}; expected {_SHAPE}.'
        )
    query = line["query"]
    qid = line.get("qid")
    text = query
    if isinstance(query, dict):
        qid = query.get("qid", qid)
        text = query.get("text")
        remedy = 'add "qid" beside its "text"'
    else:
        remedy = 'add "qid" beside "query"'
    if qid is None:
        raise LineError("qid", f"The query has no qid: {remedy}.")
    qid = _identifier(qid, "qid", "The qid")
    if not isinstance(text, str):
        raise LineError("query", f"The query's text is {shown(text)}, expected a string.", qid)
    if not text.strip():
        raise LineError("query", "The query's text is empty: there is nothing to rank by.", qid)
    return Query(qid, text)


def _identifier(value: object, kind: str, what: str) -> str:
    if isinstance(value, str) and value and not value.isspace():
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise LineError(kind, f"{what} is {shown(value)}, expected a string or an integer.")


def _request(query: Query, line: Mapping[str, Any]) -> ParsedLine:
    key = "candidates" if "candidates" in line else "documents"
    items = line.get(key)
    if not isinstance(items, list):
        found = f'"{key}" is {shown(items)}' if key in line else 'There is no "candidates"'
        raise LineError("shape", f"{found}, expected a list of documents.")
    documents: dict[str, Document] = {}
    warnings: dict[str, None] = {}
    last_score = inf
    for number, item in enumerate(items, 1):
        document = _document(item, number)
        if document.docid in documents:
            warnings[DOCID_REPEATS] = None
            continue
        documents[document.docid] = document
        if document.score is not None:
            if document.score > last_score:
                warnings[SCORES_RISE] = None
            last_score = document.score
    request = Request(query, tuple(documents.values()), _weight(line))
    return ParsedLine(request, tuple(warnings))


def _weight(line: Mapping[str, Any]) -> float:
    """How much a query counts where not all can be ranked in time: 1 where nothing is said."""
    query = line["query"]
    weight = query.get("weight") if isinstance(query, dict) else None
    if weight is None:
        weight = line.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or weight < 0:
        raise LineError("weight", f"The weight is {shown(weight)}, expected a number from 0.")
    return float(weight)


def _document(item: object, number: int) -> Document:
    """Read candidate `number` (from 1)."""
    if isinstance(item, str):
        return Document(str(number), item)
    if not isinstance(item, dict):
        raise LineError(
            "shape", f"Candidate {number} is {shown(item)}, expected an object or a string."
        )
    location = _location(item, number) if "path" in item else None
    docid = item.get("docid", location)
    if docid is None:
        raise LineError(
            "docid", f'Candidate {number} has no "docid", only the keys {listed(item)}.'
        )
    docid = _identifier(docid, "docid", f"The docid of candidate {number}")
    score = item.get("score")
    if score is not None:
        if not isinstance(score, int | float) or isinstance(score, bool):
            raise LineError(
                "score", f"The score of {shown(docid)} is {shown(score)}, expected a number."
            )
        score = float(score)
    text, title = _text(item, docid)
    return Document(docid, text, title or location, score)


def _location(item: Mapping[str, Any], number: int) -> str:
    """Name a piece of code: `path:start_line`, or `path` alone."""
    path = _identifier(item["path"], "docid", f"The path of candidate {number}")
    start = item.get("start_line")
    if start is None:
        return path
    return f"{path}:{_identifier(start, 'docid', f'The start_line of candidate {number}')}"


def _text(item: Mapping[str, Any], docid: str) -> tuple[str, str | None]:
    """Find a candidate's text and title; a title alone is its text."""
    doc = item.get("doc")
    if isinstance(doc, str):
        doc = {"text": doc}
    elif doc is not None and not isinstance(doc, dict):
        raise LineError(
            "text", f"The doc of {shown(docid)} is {shown(doc)}, expected an object or a string."
        )
    holder = doc or item
    text = None
    for key in _TEXT_KEYS:
        if (text := _string(holder, key, docid)) is not None:
            break
    title = _string(holder, "title", docid) or _string(item, "title", docid)
    if title and (not text or text.isspace()):
        return title, None
    if text is not None:
        return text, title
    # An object that says nothing is an empty document; one that says it by another name is not.
    if doc is not None and (not doc or not _DOC_KEYS.isdisjoint(doc)):
        return "", None
    raise LineError(
        "text",
        f"Document {shown(docid)} has no text: expected one of "
        f"{', '.join(_TEXT_KEYS)}, found only the keys {listed(holder)}.",
    )


def _string(holder: Mapping[str, Any], key: str, docid: str) -> str | None:
    value = holder.get(key)
    if value is None or isinstance(value, str):
        return value
    raise LineError("text", f"The {key} of {shown(docid)} is {shown(value)}, expected a string.")
