"""Tells which known document and query a prompt shows, however it is titled, cut or cleaned."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

from .knowledge import Knowledge

SHORT = 40
LONG = 1000


class _LettersOnly(dict[int, int | None]):
    """A table with which `str.translate`, a fast way, drops all but letters and digits."""

    def __missing__(self, code: int) -> int | None:
        self[code] = code if chr(code).isalnum() else None
        return self[code]


_LETTERS = _LettersOnly()


@dataclass(frozen=True, slots=True)
class Recognised:
    """The query (its qid, or its text) and each document's docid (None: not known) and gain."""

    qid: str
    docids: tuple[str | None, ...]
    gains: tuple[float, ...]


class Recogniser(Protocol):
    """How a judge gets from shown texts to gains."""

    def recognise(self, query: str, texts: Sequence[str]) -> Recognised:
        """Name the query and the documents; an unknown or ambiguous one has gain 0."""
        ...


def letters(text: str, limit: int) -> str:
    """The first `limit` letters and digits in lower case: what survives cleaning and layout."""
    found = text[: 2 * limit].translate(_LETTERS)
    if len(found) < limit and len(text) > 2 * limit:
        found = text.translate(_LETTERS)
    return found[:limit].casefold()


def hashed(seed: int, *words: str) -> float:
    """A number in (0, 1) that is fixed by the seed and the words."""
    digest = blake2b("\0".join((str(seed), *words)).encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") + 0.5) / 2**64


class HashRecogniser:
    """Knows nothing and judges by a seeded hash of a document's text, so that any input works."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def recognise(self, query: str, texts: Sequence[str]) -> Recognised:
        """Take a document's leading letters as its docid."""
        docids = tuple(letters(text, SHORT) for text in texts)
        gains = tuple(hashed(self._seed, "gain", docid) for docid in docids)
        return Recognised(query, docids, gains)


class _QueryFinder:
    """Finds a query by its text (or its qid), else by the documents that are asked with it."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._qids: dict[str, list[str]] = defaultdict(list)
        self._asked_with: dict[str, set[str]] = defaultdict(set)
        for qid, text in knowledge.queries.items():
            self._qids[letters(text, LONG)].append(qid)
        for qid in (*knowledge.asked, *knowledge.gains):
            for docid in (*knowledge.asked.get(qid, ()), *knowledge.gains.get(qid, ())):
                self._asked_with[docid].add(qid)
            if qid not in knowledge.queries and qid not in self._qids[letters(qid, LONG)]:
                self._qids[letters(qid, LONG)].append(qid)

    def find(self, query: str, docids: Iterable[str]) -> str:
        qids = self._qids.get(letters(query, LONG), []) if query else []
        if len(qids) == 1:
            return qids[0]
        votes = Counter(
            qid
            for docid in docids
            for qid in self._asked_with.get(docid, ())
            if not qids or qid in qids
        )
        # Sorted, because sets have no order of their own.
        return max(sorted(votes), key=votes.__getitem__) if votes else query


class DocidRecogniser:
    """Reads a document's first line as its docid."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._gains = knowledge.gains
        self._queries = _QueryFinder(knowledge)
        self._known = set(knowledge.documents).union(*knowledge.gains.values())

    def recognise(self, query: str, texts: Sequence[str]) -> Recognised:
        """Look the first lines up."""
        lines = [text.split("\n", 1)[0].strip() for text in texts]
        qid = self._queries.find(query, lines)
        gains = self._gains.get(qid, {})
        return Recognised(
            qid,
            tuple(line if line in self._known else None for line in lines),
            tuple(gains.get(line, 0.0) for line in lines),
        )


class CorpusRecogniser:
    """Finds a document by the leading letters of its text, or of its title and text."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge
        self._queries = _QueryFinder(knowledge)
        index: dict[str, list[str]] = defaultdict(list)
        for docid in knowledge.documents:
            for key in {letters(form, SHORT) for form in self._forms(docid)} - {""}:
                index[key].append(docid)
        self._index = dict(index)
        self._sorted = sorted(self._index)
        self._long: dict[str, list[str]] = {}

    def recognise(self, query: str, texts: Sequence[str]) -> Recognised:
        """Look each text up; several documents that fit are told apart by the query's gains."""
        fitting = [self._fitting(text) for text in texts]
        qid = self._queries.find(query, (docid for docids in fitting for docid in docids))
        gains = self._knowledge.gains.get(qid, {})
        docids = tuple(self._choose(found, qid) for found in fitting)
        return Recognised(
            qid,
            docids,
            tuple(0.0 if docid is None else gains.get(docid, 0.0) for docid in docids),
        )

    def _forms(self, docid: str) -> Iterator[str]:
        title, text = self._knowledge.documents[docid]
        yield text
        if title:
            yield f"{title} {text}"

    def _fitting(self, text: str) -> list[str]:
        # The first line alone, for a short last document with a reminder right below it.
        return self._with_start(text) or self._with_start(text.split("\n", 1)[0])

    def _with_start(self, text: str) -> list[str]:
        short = letters(text, SHORT)
        found = self._index.get(short, [])
        if not found and 0 < len(short) < SHORT:
            found = self._cut(short)
        if len(found) < 2:
            return found
        shown = letters(text, LONG)
        alike = [
            docid
            for docid in found
            if any(shown.startswith(form[: len(shown)]) for form in self._long_forms(docid))
        ]
        return self._closest(alike, text.strip(), shown) if len(alike) > 1 else alike

    def _closest(self, alike: list[str], text: str, shown: str) -> list[str]:
        """Those shown as they are, else those uncut, else those cut, else all that are alike."""
        return (
            [docid for docid in alike if text in self._forms(docid)]
            or [docid for docid in alike if shown in self._long_forms(docid)]
            or [docid for docid in alike if any(f.startswith(text) for f in self._forms(docid))]
            or alike
        )

    def _cut(self, short: str) -> list[str]:
        """The documents that start with a text cut shorter than a key."""
        at = bisect_left(self._sorted, short)
        found: dict[str, None] = {}
        while at < len(self._sorted) and self._sorted[at].startswith(short):
            found.update(dict.fromkeys(self._index[self._sorted[at]]))
            at += 1
        return list(found)

    def _long_forms(self, docid: str) -> list[str]:
        if docid not in self._long:
            self._long[docid] = [letters(form, LONG) for form in self._forms(docid)]
        return self._long[docid]

    def _choose(self, found: list[str], qid: str) -> str | None:
        if len(found) > 1:
            gains = self._knowledge.gains.get(qid, {})
            asked = self._knowledge.asked.get(qid) or gains.keys()
            found = [docid for docid in found if docid in asked] or found
            # Copies of one text are the same document to a judge, unless judged otherwise.
            if len({gains.get(docid, 0.0) for docid in found}) > 1:
                return None
        return found[0] if found else None
