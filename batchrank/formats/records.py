"""Reads a JSONL line with all that it says, to write it in another format."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from batchrank.formats.candidates import TEXT_KEYS, docid_of
from batchrank.formats.jsonline import load_line
from batchrank.formats.ownrows import parse_row
from batchrank.formats.requests import LISTS, list_key, parse_request
from batchrank.formats.rows import Row
from batchrank.values import Document, Request

_CANDIDATE = frozenset(("docid", "score", "doc", "title", "metadata", "embedding"))
_DOC = frozenset(("title", "metadata", "embedding"))
_HIT = frozenset(("qid", "rank"))
_QUERY = frozenset(("qid", "text", "weight"))
_LINE = frozenset(("query", "qid", "weight", *LISTS))


@dataclass(frozen=True, slots=True)
class Entry:
    """A request and what else its line says.

    `metadata` has all that stands beside each candidate's docid, score, title and text, in the
    order of the candidates; `extra` is what stands beside the query.
    """

    request: Request
    metadata: Sequence[Mapping[str, Any]]
    extra: Mapping[str, Any]

    @property
    def candidates(self) -> list[tuple[Document, Mapping[str, Any]]]:
        """Each candidate with its metadata."""
        return list(zip(self.request.candidates, self.metadata, strict=True))

    @property
    def scores(self) -> list[float]:
        """The candidates' scores, or n − rank + 1 where they are not all there and falling."""
        given = [document.score for document in self.request.candidates]
        scores = [score for score in given if score is not None]
        falls = all(later < earlier for earlier, later in pairwise(scores))
        if len(scores) == len(given) and falls:
            return scores
        return [float(score) for score in range(len(given), 0, -1)]


def read_entry(data: bytes) -> tuple[Entry, tuple[str, ...]]:
    """An entry and the warnings of `parse_request`, whose LineError it raises."""
    parsed = parse_request(data)
    line = load_line(data)
    key = list_key(line)
    implied = _HIT if key == "hits" else frozenset()
    documents = {document.docid: document for document in parsed.request.candidates}
    found: dict[str, Mapping[str, Any]] = {}
    for number, item in enumerate(line[key], 1):
        docid, _ = docid_of(item, number)
        if docid not in found:
            found[docid] = _metadata(item, documents[docid], implied)
    extra = {name: value for name, value in line.items() if name not in _LINE}
    if isinstance(query := line["query"], dict):
        extra |= {name: value for name, value in query.items() if name not in _QUERY}
    return Entry(parsed.request, list(found.values()), extra), parsed.warnings


def read_record(data: bytes, number: int) -> tuple[Entry | Row, tuple[str, ...]]:
    """An entry as `read_entry`, or the row of batchrank's own output that line `number` is."""
    if b'"ranking"' in data:
        line = load_line(data)
        if isinstance(line, dict) and "ranking" in line and list_key(line) not in line:
            return parse_row(line, number), ()
    return read_entry(data)


def _metadata(item: object, document: Document, implied: Container[str]) -> dict[str, Any]:
    """What a candidate and its `doc` say beyond docid, score, title, text and embedding."""
    if not isinstance(item, dict):
        return {}
    inner = item.get("doc")
    doc = inner if isinstance(inner, dict) else {}
    holder = doc or item
    text = next((key for key in TEXT_KEYS if holder.get(key) is not None), None)
    found = {
        name: value
        for one, known in ((item, _CANDIDATE), (doc, _DOC))
        for name, value in one.items()
        if name not in known
        and name not in implied
        and not (name == text and one is holder)
        and not (value is None and name in TEXT_KEYS)
    }
    for one in (item, doc):
        if isinstance(given := one.get("metadata"), dict):
            found |= given
        if one.get("embedding") is not None and not document.embedding:
            found["embedding"] = one["embedding"]
    return found


def canonical(entry: Entry) -> dict[str, Any]:
    """The line in batchrank's own shape."""
    query = entry.request.query
    return {
        "query": {"qid": query.qid, "text": query.text},
        "candidates": [
            {
                "docid": document.docid,
                "score": document.score,
                "doc": titled(document),
                **described(document, metadata),
            }
            for document, metadata in entry.candidates
        ],
        **beside(entry),
    }


def titled(document: Document) -> dict[str, str]:
    """A document's title, where it has one, and text."""
    title = {"title": document.title} if document.title else {}
    return {**title, "text": document.text}


def described(document: Document, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What a document has beside its text: metadata and an embedding, where there are any."""
    embedding = {"embedding": list(document.embedding)} if document.embedding else {}
    return {**({"metadata": metadata} if metadata else {}), **embedding}


def beside(entry: Entry) -> dict[str, Any]:
    """What stands beside the query: its weight, where it has one, and all else."""
    weight = entry.request.weight
    return {**({} if weight == 1 else {"weight": weight}), **entry.extra}
