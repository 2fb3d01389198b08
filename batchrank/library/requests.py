"""Turns a program's requests into the JSONL lines that a run reads."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping

import orjson

from batchrank.errors import UsageError
from batchrank.values import Document, Request

Given = Request | Mapping[str, object]
"""A request, or what a line of a JSONL input holds (docs/input.md)."""
Requests = Iterable[Given] | AsyncIterable[Given]


async def each(requests: Requests) -> AsyncIterator[Given]:
    """The requests one by one, whichever way they come."""
    if isinstance(requests, AsyncIterable):
        async for request in requests:
            yield request
    else:
        for request in requests:
            yield request


def encoded(request: object) -> bytes:
    """A request as a line; UsageError for what is none, and for what no line can hold."""
    value = _plain(request) if isinstance(request, Request) else request
    if not isinstance(value, Mapping):
        raise UsageError(
            f"a request is {request!r:.60} ({type(request).__name__}), expected a Request or a "
            "mapping: give an iterable of them (rerank_frame takes a DataFrame)"
        )
    try:
        return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    except TypeError as error:
        raise UsageError(f"a request can't be written as JSON: {error}") from error


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
