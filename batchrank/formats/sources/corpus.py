"""Looks up the texts of documents and queries in files that may be larger than memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from batchrank.errors import DiskError, UsageError
from batchrank.formats.trec import Line, numbered_lines
from batchrank.formats.wording import listed, quoted

_DOCIDS = ("_id", "docid", "doc_id", "id", "docno", "pid")
_QIDS = ("_id", "qid", "query_id", "id")
_ASKED = ("text", "query", "title")
_TSV: dict[int, tuple[str, ...]] = {
    0: (),  # an empty text
    1: ("text",),
    2: ("title", "text"),
    3: ("url", "title", "text"),  # MS MARCO's documents
}
"""The columns behind a docid, by their number."""
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Texts:
    """A TREC run and where the texts that it names stand."""

    run: Path
    corpus: Path
    topics: Path


class TextStore:
    """The texts that a run needs, in a temporary SQLite file that goes when it is closed.

    Documents are named first (`want`), then found by one reading of the corpus; so nothing else of
    it is kept, and memory stays flat.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._database = connection
        connection.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536;"
            "CREATE TABLE docs (docid TEXT UNIQUE NOT NULL, record BLOB);"
            "CREATE TABLE topics (qid TEXT UNIQUE NOT NULL, text TEXT NOT NULL, asked INTEGER);"
        )

    def want(self, docids: Iterable[str]) -> None:
        """Name documents that will be looked up."""
        rows = ((docid,) for docid in docids)
        self._database.executemany("INSERT OR IGNORE INTO docs (docid) VALUES (?)", rows)

    def read_corpus(self, path: Path) -> None:
        """Find the documents that were named; of several with one docid the first."""
        rows = ((line.text, _docid(line)) for line in _lines(path, "corpus"))
        self._database.executemany(
            "UPDATE docs SET record = ? WHERE docid = ? AND record IS NULL", rows
        )

    def read_topics(self, path: Path) -> None:
        """Read the texts of queries, JSONL or `qid TAB text`; of several the first."""
        rows = (_topic(line) for line in _lines(path, "topics") if not _is_header(line))
        self._database.executemany("INSERT OR IGNORE INTO topics (qid, text) VALUES (?, ?)", rows)

    def read_first(self, texts: Texts) -> None:
        """Read the first line of corpus and topics, to see that they can be used."""
        _docid(next(_lines(texts.corpus, "corpus")))
        _topic(next(_lines(texts.topics, "topics")))

    def documents(self, docids: Iterable[str]) -> dict[str, dict[str, Any]]:
        """The documents among these that the corpus has, as it has them."""
        found: dict[str, str] = {}
        asked = list(docids)
        for start in range(0, len(asked), _AT_ONCE):
            some = asked[start : start + _AT_ONCE]
            marks = ",".join("?" * len(some))
            found |= dict(
                self._database.execute(
                    f"SELECT docid, record FROM docs WHERE docid IN ({marks}) "  # noqa: S608
                    "AND record IS NOT NULL",
                    some,
                )
            )
        return {docid: _document(record) for docid, record in found.items()}

    def query(self, qid: str) -> str | None:
        """The text of a query, None where the topics do not have it."""
        row = self._database.execute(
            "UPDATE topics SET asked = 1 WHERE qid = ? RETURNING text", (qid,)
        ).fetchone()
        return None if row is None else str(row[0])

    def unasked(self) -> tuple[int, list[str]]:
        """How many topics were never asked for, and the qids of the first few."""
        (count,) = self._database.execute(
            "SELECT count(*) FROM topics WHERE asked IS NULL"
        ).fetchone()
        first = self._database.execute(
            "SELECT qid FROM topics WHERE asked IS NULL ORDER BY rowid LIMIT 3"
        )
        return count, [qid for (qid,) in first]


@contextmanager
def text_store() -> Iterator[TextStore]:
    """A store for one reading; DiskError where its file can't be written."""
    # A database without a name is a file that is removed when it is closed. Blocks of an input are
    # read by one thread after the other.
    connection = sqlite3.connect("", check_same_thread=False)
    try:
        yield TextStore(connection)
    except sqlite3.Error as error:
        raise DiskError(
            f"the texts of the run can't be kept in a temporary file ({error}): free space, or "
            "name another folder with TMPDIR"
        ) from error
    finally:
        connection.close()


def _lines(path: Path, what: str) -> Iterator[Line]:
    count = 0
    for count, line in enumerate(numbered_lines(path), 1):  # noqa: B007 - counted
        yield line
    if not count:
        raise UsageError(f"{quoted(path)} is empty: expected the {what}")


def _docid(line: Line) -> str:
    if not line.text.startswith("{"):
        docid, *cells = line.text.split("\t")
        if len(cells) not in _TSV:
            raise UsageError(
                f"{line.where}: {len(cells) + 1} columns; expected JSON, or docid TAB text, or "
                "docid TAB title TAB text"
            )
        return docid
    return _identifier(line, _object(line), _DOCIDS)


def _is_header(line: Line) -> bool:
    """Whether it is the first line of topics and names the columns."""
    cells = line.text.lower().split("\t")
    return line.number == 1 and cells[0] in _QIDS and cells[1:] in [[name] for name in _ASKED]


def _topic(line: Line) -> tuple[str, str]:
    if not line.text.startswith("{"):
        qid, tab, text = line.text.partition("\t")
        if not tab:
            raise UsageError(f"{line.where}: expected JSON, or qid TAB text")
        return qid, text
    record = _object(line)
    asked = next((record[key] for key in _ASKED if isinstance(record.get(key), str)), None)
    if asked is None:
        raise UsageError(f"{line.where}: no text of a query ({' or '.join(_ASKED)})")
    return _identifier(line, record, _QIDS), asked


def _identifier(line: Line, record: dict[str, Any], keys: tuple[str, ...]) -> str:
    found = next((record[key] for key in keys if key in record), None)
    if isinstance(found, bool) or not isinstance(found, str | int) or found == "":
        raise UsageError(
            f"{line.where}: no identifier ({' or '.join(keys)}) among the keys {listed(record)}"
        )
    return str(found)


def _object(line: Line) -> dict[str, Any]:
    try:
        record = orjson.loads(line.text)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{line.where}: not JSON: {error.msg}") from None
    assert isinstance(record, dict)  # it begins with a brace
    return record


def _document(record: str) -> dict[str, Any]:
    if not record.startswith("{"):
        _, *cells = record.split("\t")
        return dict(zip(_TSV[len(cells)], cells, strict=True))
    value: dict[str, Any] = orjson.loads(record)
    value.pop(next(key for key in _DOCIDS if key in value))
    return value
