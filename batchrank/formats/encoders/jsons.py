"""Writes JSONL and JSON arrays: batchrank's own, RankLLM's and RankGPT's."""

from __future__ import annotations

from collections.abc import Callable

from batchrank.formats.encoders.base import Record, as_entry
from batchrank.formats.jsonline import dump_line
from batchrank.formats.records import beside, canonical, described, titled
from batchrank.formats.rows import Row, encode_jsonl


class Lines:
    """One JSON object a line."""

    def __init__(self, encode: Callable[[Record], bytes]) -> None:
        self._encode = encode

    def add(self, record: Record) -> bytes:
        """A record as a line."""
        return self._encode(record)

    def end(self) -> bytes:
        """Nothing."""
        return b""


class Array:
    """One array, an object a line."""

    def __init__(self, encode: Callable[[Record], bytes]) -> None:
        self._encode = encode
        self._before = b"[\n"

    def add(self, record: Record) -> bytes:
        """A record as an element."""
        data = self._before + self._encode(record).rstrip(b"\n")
        self._before = b",\n"
        return data

    def end(self) -> bytes:
        """The end of the array."""
        return (b"[" if self._before == b"[\n" else b"") + b"\n]\n"


def own(record: Record) -> bytes:
    """batchrank's line of a request or of a result."""
    return encode_jsonl(record) if isinstance(record, Row) else dump_line(canonical(record))


def rankllm(record: Record) -> bytes:
    """RankLLM's request or result (`rank_llm/data.py`): `query`, and candidates with `doc`.

    It needs scores: where they are not there or rise, n − rank + 1. What else is known of a
    document stands in its `doc`.
    """
    entry = as_entry(record)
    query = entry.request.query
    candidates = [
        {
            "docid": document.docid,
            "score": score,
            "doc": {
                **titled(document),
                **described(document, metadata),
            },
        }
        for (document, metadata), score in zip(entry.candidates, entry.scores, strict=True)
    ]
    asked = {"text": query.text, "qid": query.qid}
    return dump_line({"query": asked, "candidates": candidates, **beside(entry)})


def rankgpt(record: Record) -> bytes:
    """RankGPT's `query` and `hits`: each has the qid, and its text as `content`."""
    entry = as_entry(record)
    query = entry.request.query
    hits = [
        {
            "content": document.text,
            "qid": query.qid,
            "docid": document.docid,
            "rank": rank,
            "score": document.score,
            **({"title": document.title} if document.title else {}),
            **described(document, metadata),
        }
        for rank, (document, metadata) in enumerate(entry.candidates, 1)
    ]
    # A query without hits keeps its qid beside it.
    asked = {"query": query.text} if hits else {"query": query.text, "qid": query.qid}
    return dump_line({**asked, "hits": hits, **beside(entry)})
