"""Reads one candidate of a query, in any of the accepted shapes, as a document."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from batchrank.errors import LineError
from batchrank.formats.wording import listed, shown
from batchrank.values import Document

TEXT_KEYS = ("text", "segment", "contents", "content", "body", "passage")
_TOLD = frozenset((*TEXT_KEYS, "title", "doc"))
_NOTHING: Mapping[str, Any] = {}
_LARGEST_EXACT = 2.0**53
"""Of floats: whole numbers from here on are not told apart."""


def read_candidate(item: object, number: int) -> tuple[Document, bool]:
    """Read candidate `number` (from 1); its score may be NaN or infinite.

    Returns too whether an embedding is given that can't be used. Raises LineError with kind
    `shape`, `docid`, `text` or `score`.
    """
    if isinstance(item, str):
        return Document(str(number), item), False
    # Whatever is as most are is taken as it is: an input has hundreds of candidates a line.
    docid, location = docid_of(item, number)
    assert isinstance(item, dict)
    doc = item.get("doc")
    holder = doc if isinstance(doc, dict) else item if doc is None else _NOTHING
    text, title = holder.get("text"), None
    if not isinstance(text, str) or "title" in holder or "title" in item:
        text, title = _text(item, docid)
    score = item.get("score")
    if not isinstance(score, float):
        score = score_of(item, docid)
    if (metadata := holder.get("metadata")) is None:
        metadata = item.get("metadata")
    if (vector := holder.get("embedding")) is None:
        vector = item.get("embedding")
    if not metadata and not vector:
        return Document(docid, text, title or location, score), False
    embedding = _embedding(vector)
    document = Document(docid, text, title or location, score, _metadata(metadata), embedding)
    return document, bool(vector) and not embedding


def docid_of(item: object, number: int) -> tuple[str, str | None]:
    """The docid of candidate `number`, and the place in code that it stands for.

    Raises LineError with kind `shape` or `docid`.
    """
    if isinstance(item, str):
        return str(number), None
    if not isinstance(item, dict):
        raise LineError(
            "shape", f"Candidate {number} is {shown(item)}, expected an object or a string."
        )
    location = _location(item, number) if "path" in item else None
    docid = item.get("docid", location)
    if isinstance(docid, str) and docid and not docid.isspace():
        return docid, location
    if docid is None:
        said = "an empty docid" if "docid" in item else f'no "docid", only the keys {listed(item)}'
        raise LineError("docid", f"Candidate {number} has {said}.")
    return identifier(docid, "docid", f"The docid of candidate {number}"), location


def score_of(item: object, docid: str) -> float | None:
    """The first stage's score, perhaps NaN or infinite; LineError where it is no number."""
    score = item.get("score") if isinstance(item, dict) else None
    if score is None:
        return None
    if not isinstance(score, int | float) or isinstance(score, bool):
        raise LineError(
            "score", f"The score of {shown(docid)} is {shown(score)}, expected a number."
        )
    return float(score)


def _metadata(found: object) -> dict[str, str | float]:
    """The strings and numbers of a candidate's metadata; of all else filters know nothing."""
    if not isinstance(found, dict):
        return {}
    return {
        key: value
        for key, value in found.items()
        if isinstance(value, str | int | float) and not isinstance(value, bool)
    }


def _embedding(found: object) -> Sequence[float]:
    """A candidate's vector; empty where what is given is no list of finite numbers."""
    if not isinstance(found, list):
        return ()
    try:
        # A fourth of the memory of a tuple.
        vector = array("d", found)
    except TypeError:
        return ()
    return vector if all(map(isfinite, vector)) else ()


def _location(item: Mapping[str, Any], number: int) -> str:
    """Name a piece of code: `path:start_line`, or `path` alone."""
    path = identifier(item["path"], "docid", f"The path of candidate {number}")
    start = item.get("start_line")
    if start is None:
        return path
    return f"{path}:{identifier(start, 'docid', f'The start_line of candidate {number}')}"


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
    for key in TEXT_KEYS:
        if (text := _string(holder, key, docid)) is not None:
            break
    title = _string(holder, "title", docid)
    if not title and holder is not item:
        title = _string(item, "title", docid)
    if title and (not text or text.isspace()):
        return title, None
    if text is not None:
        return text, title
    # An object that says nothing is an empty document; one that says it by another name is not.
    if not _TOLD.isdisjoint(holder):
        return "", None
    raise LineError(
        "text",
        f"Document {shown(docid)} has no text: expected one of "
        f"{', '.join(TEXT_KEYS)}, found only the keys {listed(holder)}.",
    )


def _string(holder: Mapping[str, Any], key: str, docid: str) -> str | None:
    value = holder.get(key)
    if isinstance(value, str) or value is None:
        return value
    raise LineError("text", f"The {key} of {shown(docid)} is {shown(value)}, expected a string.")


def identifier(value: object, kind: str, what: str) -> str:
    """A qid or docid as text; LineError of `kind`, which begins with `what`, where it is none."""
    if isinstance(value, str) and value and not value.isspace():
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and abs(value) >= _LARGEST_EXACT:
        # Whatever its digits were: JSON's larger integers are read as floats.
        raise LineError(kind, f"{what} is too large a number ({value:g}): write it as a string.")
    raise LineError(kind, f"{what} is {shown(value)}, expected a string or an integer.")
