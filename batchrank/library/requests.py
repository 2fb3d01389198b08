"""Turns a program's requests into the JSONL lines that a run reads."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from math import isfinite
from numbers import Real
from typing import Any

import orjson

from batchrank.errors import LineError, UsageError
from batchrank.formats.requests import list_key
from batchrank.formats.sources.tables import encoded as encoded_line
from batchrank.formats.sources.tables import unusable
from batchrank.values import Document, Request

Given = Request | Mapping[str, object]
"""A request, or what a line of a JSONL input holds (docs/input.md)."""
Requests = Iterable[Given] | AsyncIterable[Given]


def check_requests(requests: object) -> None:
    """UsageError where `requests` are no iterable of requests, say one of them, or a file's name.

    What is wrong with one of them is not seen here.
    """
    told = f"the requests are {requests!r:.60} ({type(requests).__name__}): give"
    if isinstance(requests, Mapping | Request):
        raise UsageError("you gave one request: put it in a list")
    if type(requests).__name__ == "DataFrame":
        raise UsageError("the requests are a DataFrame: rerank_frame takes one")
    if isinstance(requests, str | bytes) or not isinstance(requests, Iterable | AsyncIterable):
        raise UsageError(f"{told} an iterable of Requests or mappings")


async def each(requests: Requests) -> AsyncIterator[Given]:
    """The requests one by one, whichever way they come."""
    if isinstance(requests, AsyncIterable):
        async for request in requests:
            yield request
    else:
        for request in requests:
            yield request


def encoded(request: object) -> bytes:
    """A request as a line; of what is none, and of what JSON has no word for, a line that fails."""
    value = _plain(request) if isinstance(request, Request) else request
    if not isinstance(value, Mapping):
        said = f"The request is {request!r:.60} ({type(request).__name__}), expected a Request or"
        return unusable(None, LineError("shape", f"{said} a mapping."))
    try:
        data = orjson.dumps(dict(value), option=orjson.OPT_SERIALIZE_NUMPY)
    except TypeError as error:
        query = value.get("query")
        qid = query.get("qid") if isinstance(query, Mapping) else value.get("qid")
        said = f"The request can't be written as JSON: {error}."
        return unusable(str(qid) if isinstance(qid, str | int) else None, LineError("json", said))
    return _with_no_numbers(value, data)


def _with_no_numbers(value: Mapping[str, Any], data: bytes) -> bytes:
    """The line with the scores that are NaN or infinite, which orjson writes as null unsaid."""
    key = list_key(value)
    items = value.get(key)
    scores = [
        one.get("score") if isinstance(one, Mapping) else None
        for one in (items if isinstance(items, list | tuple) else ())
    ]
    if all(not isinstance(score, Real) or isfinite(score) for score in scores):
        return data
    line = orjson.loads(data)
    for one, score in zip(line[key], scores, strict=True):
        if isinstance(score, Real):
            one["score"] = float(score)
    return encoded_line(line)


def _plain(request: Request) -> dict[str, object]:
    return {
        "query": {"qid": request.query.qid, "text": request.query.text},
        "candidates": [_candidate(document) for document in request.candidates],
        "weight": request.weight,
    }


def _candidate(document: Document) -> dict[str, object]:
    told = {"title": document.title, "text": document.text}
    optional = {
        "score": document.score,
        "metadata": dict(document.metadata) or None,
        "embedding": list(document.embedding) or None,
    }
    return {
        "docid": document.docid,
        "doc": {name: value for name, value in told.items() if value is not None},
        **{name: value for name, value in optional.items() if value is not None},
    }
