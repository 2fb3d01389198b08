"""What a judge knows: queries, document texts and gains, read from a search team's files."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

TEXT_KEYS = ("text", "segment", "contents", "content", "body", "passage")
COLUMNS = {3: (0, 1, 2), 4: (0, 2, 3), 6: (0, 2, 4)}
"""Places of qid, docid and gain in `qid docid score`, in a qrels line and in a TREC run line."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """`documents` maps a docid to its title (or "") and text, `gains` a qid to gains by docid.

    `asked` maps a qid to the docids it is asked with, where that is known apart from `gains`.
    """

    documents: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    queries: Mapping[str, str] = field(default_factory=dict)
    gains: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    asked: Mapping[str, frozenset[str]] = field(default_factory=dict)


def read_knowledge(
    *,
    gains: Path | None = None,
    inputs: Iterable[Path] = (),
    corpus: Path | None = None,
    queries: Path | None = None,
) -> Knowledge:
    """Read gains (qrels, `qid docid score` or a TREC run) and texts (all files may be gzipped).

    `inputs` are batch inputs, whose unusable lines are skipped; `corpus` has rows of `_id`,
    `title`, `text`; `queries` rows of `_id`, `text`. Raises OSError, and ValueError for a line of
    gains or a row of a corpus that can't be read.
    """
    documents: dict[str, tuple[str, str]] = {}
    texts: dict[str, str] = {}
    asked: dict[str, frozenset[str]] = {}
    for path in inputs:
        for qid, query, candidates in _requests(path):
            texts[qid] = query
            asked[qid] = frozenset(candidates)
            documents.update(candidates)
    for row in _rows(corpus):
        documents[str(row["_id"])] = (row.get("title") or "", row["text"])
    for row in _rows(queries):
        texts[str(row["_id"])] = row["text"]
    return Knowledge(documents, texts, {} if gains is None else _read_gains(gains), asked)


def _lines(path: Path) -> Iterator[bytes]:
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        yield from file


def _rows(path: Path | None) -> Iterator[dict[str, Any]]:
    if path is not None:
        for line in _lines(path):
            yield orjson.loads(line)


def _read_gains(path: Path) -> dict[str, dict[str, float]]:
    gains: dict[str, dict[str, float]] = {}
    for number, line in enumerate(_lines(path), start=1):
        words = line.decode().split()
        if words:
            if len(words) not in COLUMNS:
                raise ValueError(f"{path.name}:{number} has {len(words)} columns, not 3, 4 or 6")
            qid, docid, gain = (words[place] for place in COLUMNS[len(words)])
            gains.setdefault(qid, {})[docid] = float(gain)
    return gains


def _requests(path: Path) -> Iterator[tuple[str, str, dict[str, tuple[str, str]]]]:
    """Each usable line's qid, query and documents; the server need not know the others."""
    for line in _lines(path):
        try:
            row = orjson.loads(line)
            query = row["query"]
            qid, text = (
                (row["qid"], query) if isinstance(query, str) else (query["qid"], query["text"])
            )
            yield str(qid), str(text), dict(_documents(row))
        except (orjson.JSONDecodeError, KeyError, TypeError):
            continue


def _documents(row: dict[str, Any]) -> Iterator[tuple[str, tuple[str, str]]]:
    for rank, text in enumerate(row.get("documents", ()), start=1):
        yield str(rank), ("", text)
    for candidate in row.get("candidates", ()):
        document = candidate.get("doc", candidate)
        title = document.get("title") or ""
        text = next((document[key] for key in TEXT_KEYS if document.get(key)), "")
        docid = candidate.get("docid")
        if docid is None:
            docid = title = f"{candidate['path']}:{candidate['start_line']}"
        yield str(docid), (title, text)
