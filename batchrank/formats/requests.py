"""Reads one JSONL line, in any of the accepted shapes, as a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, isfinite
from typing import Any

from batchrank.errors import LineError
from batchrank.formats.candidates import (
    docid_of,
    identifier,
    read_candidate,
    score_of,
)
from batchrank.formats.jsonline import load_line
from batchrank.formats.wording import listed, shown
from batchrank.values import Document, Query, Request

SCORES_RISE = "scores rise: the order of the candidates is the first stage, scores are not used"
SCORES_MISSING = "a score that is NaN or Infinity is no number: it is read as null"
EMBEDDING_UNUSABLE = "an embedding is no list of finite numbers: it counts as missing"
NO_CANDIDATES = "there are no candidates: nothing to rank"
DOCID_REPEATS = "a docid stands twice among the candidates: the first is kept"

UNUSABLE = "batchrank:unusable"
"""The key by which a reader of another format says why a query can't be used: [kind, message]."""

LISTS = ("candidates", "documents", "hits")
"""The keys under which candidates stand."""
_SHAPE = '{"query": {"qid", "text"}, "candidates": [{"docid", "doc": {"text"}}]}'


@dataclass(frozen=True, slots=True)
class ParsedLine:
    """A request and what is odd about it; each warning is a fixed sentence, so they count."""

    request: Request
    warnings: tuple[str, ...] = ()


def parse_request(data: bytes) -> ParsedLine:
    """Read a line as `query` and `candidates` (`documents`, `hits`); unknown keys are ignored.

    `query` is `{"qid", "text"}`, or a string beside a top-level `qid`. A candidate is a string
    (docids are then "1".."n"), or an object with `docid`, perhaps `score`, and its text and
    `title` in `doc`, as the string `doc`, or beside `docid`; code has `path` and perhaps
    `start_line`, which make its docid and title. `metadata` and `embedding` stand in `doc` or
    beside `docid`. Integers as identifiers become strings. The first of candidates with the same
    docid is kept. `weight` stands beside `query` or in it. `hits` are RankGPT's: each has the qid.

    Raises LineError with kind `json`, `encoding`, `size`, `shape`, `query`, `qid`, `docid`,
    `text`, `score` or `weight`.
    """
    line = load_line(data)
    if not isinstance(line, dict):
        raise LineError("shape", f"The line is {shown(line)}, expected {_SHAPE}.")
    _refuse_unusable(line)
    query = _query(line)
    try:
        return _request(query, line)
    except LineError as error:
        error.qid = query.qid
        raise


def salvage(data: bytes) -> Request:
    """What is known of a line that can't be used: the query, docids and scores, but no texts.

    An unknown qid is empty, as is an unknown text of the query; a candidate without a docid is
    left out.
    """
    try:
        line = load_line(data)
    except LineError as error:
        return Request(Query(error.qid or "", ""), ())
    if not isinstance(line, dict):
        return Request(Query("", ""), ())
    query = line.get("query")
    asked = query if isinstance(query, dict) else {"text": query}
    text = asked.get("text")
    try:
        qid = identifier(asked.get("qid", _qid_beside(line)), "qid", "The qid")
    except LineError:
        qid = ""
    items = line.get(list_key(line))
    documents: dict[str, Document] = {}
    for number, item in enumerate(items if isinstance(items, list) else (), 1):
        try:
            docid, _ = docid_of(item, number)
        except LineError:
            continue
        try:
            score = score_of(item, docid)
        except LineError:
            score = None
        documents.setdefault(docid, Document(docid, "", score=score))
    return Request(Query(qid, text if isinstance(text, str) else ""), tuple(documents.values()))


def qid_of(data: bytes) -> str | None:
    """The qid of a line, None where none can be made out; of a line that fails, too."""
    try:
        line = load_line(data)
        if not isinstance(line, dict):
            return None
        _refuse_unusable(line)
        return _query(line).qid
    except LineError as error:
        return error.qid


def repeated_qid(qid: str, number: int, first: int) -> LineError:
    """The error of line `number`, whose qid stands in line `first` with other content."""
    return LineError(
        "duplicate",
        f"The qid {shown(qid)} of line {number} already stands in line {first} "
        "with other content: give one of them another qid, or, in a table or a run, put the rows "
        "of a query together.",
        qid,
    )


def _refuse_unusable(line: Mapping[str, Any]) -> None:
    match line.get(UNUSABLE):
        case [str(kind), str(message)]:
            qid = line["query"].get("qid") if isinstance(line.get("query"), dict) else None
            raise LineError(kind, message, qid if isinstance(qid, str) else None)


def list_key(line: Mapping[str, Any]) -> str:
    """The key of the candidates, whichever the line has."""
    return next((key for key in LISTS if key in line), "candidates")


def _qid_beside(line: Mapping[str, Any]) -> object:
    """The qid beside `query`, or the one that all RankGPT hits carry."""
    qid = line.get("qid")
    hits = line.get("hits")
    if qid is not None or not isinstance(hits, list):
        return qid
    qids = [hit.get("qid") for hit in hits if isinstance(hit, dict)]
    if any(other != qids[0] for other in qids):
        raise LineError("qid", f"The hits have different qids: {listed(map(str, qids))}.")
    return qids[0] if qids else None


def _query(line: Mapping[str, Any]) -> Query:
    if "query" not in line:
        raise LineError(
            "shape", f'There is no "query" among the keys {listed(line)}; expected {_SHAPE}.'
        )
    query = line["query"]
    qid = _qid_beside(line)
    text = query
    if isinstance(query, dict):
        qid = query.get("qid", qid)
        text = query.get("text")
        remedy = 'add "qid" beside its "text"'
    else:
        remedy = 'add "qid" beside "query"'
    if qid is None:
        raise LineError("qid", f"The query has no qid: {remedy}.")
    qid = identifier(qid, "qid", "The qid")
    if not isinstance(text, str):
        raise LineError("query", f"The query's text is {shown(text)}, expected a string.", qid)
    if not text.strip():
        raise LineError("query", "The query's text is empty: there is nothing to rank by.", qid)
    return Query(qid, text)


def _request(query: Query, line: Mapping[str, Any]) -> ParsedLine:
    key = list_key(line)
    items = line.get(key)
    if not isinstance(items, list):
        found = f'"{key}" is {shown(items)}' if key in line else 'There is no "candidates"'
        raise LineError("shape", f"{found}, expected a list of documents.")
    documents: dict[str, Document] = {}
    warnings: dict[str, None] = {} if items else {NO_CANDIDATES: None}
    last_score = inf
    for number, item in enumerate(items, 1):
        document, is_unusable = read_candidate(item, number)
        if document.docid in documents:
            warnings[DOCID_REPEATS] = None
            continue
        documents[document.docid] = document
        if is_unusable:
            warnings[EMBEDDING_UNUSABLE] = None
        if document.score is None:
            continue
        if not isfinite(document.score):
            warnings[SCORES_MISSING] = None
            documents[document.docid] = replace(document, score=None)
            continue
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
    is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
    if not (is_number and 0 <= weight < inf):
        raise LineError("weight", f"The weight is {shown(weight)}, expected a number from 0.")
    return float(weight)
