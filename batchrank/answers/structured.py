"""Reads a ranking out of JSON of any shape: arrays, objects with identifiers, scores or ranks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from batchrank.answers.jsonish import Members, Value, parse
from batchrank.answers.lexing import single
from batchrank.answers.reading import Found, failed
from batchrank.answers.scores import Score, by_pairs, by_scores, score

_START = re.compile(r"[{\[]\s*+[{\[\"']|\{\s*+\w++\s*+:")
_ATTEMPTS = 4
"""Places in a text at which structured data is looked for."""

_LAST_WORD = re.compile(r"[^\W_]+$")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_IDENTIFIER_WORDS = frozenset(
    {"id", "identifier", "index", "idx", "number", "num", "no", "docid", "编号"}
)
_DOCUMENT_WORDS = frozenset(
    {"document", "doc", "passage", "item", "candidate", "chunk", "label", "文档", "段落"}
)
_SCORE_WORDS = frozenset(
    {"score", "relevance", "rating", "confidence", "probability", "similarity", "得分", "分数"}
)
_RANK_WORDS = frozenset({"rank", "position", "place", "排名", "名次"})
_RANKING = re.compile(r"rank|order|sort|answer|result|排序|排名|结果", re.IGNORECASE)
_RANK_KEY = re.compile(
    r"(?:rank|position|place|top|no\.?|#|第)[\s_#-]*\d+[名位]?|\d+(?:st|nd|rd|th)", re.IGNORECASE
)
_NEGATIVE_KEY = re.compile(r"(?:^|[^a-z])(?:irrelevant|not?|non|least|worst)(?:[^a-z]|$)", re.I)
_SCHEMA_KEYS = frozenset({"enum", "required", "minimum", "maximum", "minItems", "maxItems"})

ReadText = Callable[[str], Found]


def read_structured(text: str, documents: int, read_text: ReadText) -> Found | None:
    """Return the ranking in the structured data of `text`; None where it holds no such data.

    `read_text` reads a string inside the data, such as `{"ranking": "[2] > [1]"}`.
    """
    start = 0
    for _ in range(_ATTEMPTS):
        opening = _START.search(text, start)
        if opening is None:
            return None
        values, start = parse(text, opening.start())
        found = _Reader(documents, read_text).read(values)
        if found is not None:
            return found
        if opening.start() == 0 and start == len(text):
            # Nothing but data that ranks nothing, such as the schema: its numbers are no order.
            return failed("no-ranking")
    return None


class _Reader:
    """Walks parsed values; `_documents` is what an ambiguous number is judged by."""

    def __init__(self, documents: int, read_text: ReadText) -> None:
        self._documents = documents
        self._read_text = read_text

    def read(self, values: list[Value]) -> Found | None:
        """Read values that follow each other: objects of one document each, or whole answers."""
        if len(values) > 1 and (found := self._objects(values)):
            return found
        candidates = [pair for value in values for pair in self._walk("", value)]
        named = [found for key, found in candidates if _RANKING.search(key)]
        distinct = list(dict.fromkeys(named or [found for _, found in candidates]))
        if not distinct:
            return self._objects(values)
        longest = max(distinct, key=lambda found: len(found.numbers))
        # A repeated answer may end in one that was cut; two that differ are no answer.
        if all(longest.numbers[: len(found.numbers)] == found.numbers for found in distinct):
            return longest
        return failed("ambiguous")

    def _walk(self, key: str, value: Value) -> Iterator[tuple[str, Found]]:
        """Yield every ranking in `value` with the key it stands under."""
        if key in _SCHEMA_KEYS or _NEGATIVE_KEY.search(key):
            return
        if isinstance(value, list):
            if found := self._array(value):
                yield key, found
            else:
                for item in value:
                    yield from self._walk(key, item)
        elif isinstance(value, Members):
            if found := self._mapping(value):
                yield key, found
            else:
                for name, item in value.items:
                    yield from self._walk(name or key, item)
        elif isinstance(value, str) and (not key or _RANKING.search(key)):
            found = self._read_text(value)
            if found.numbers:
                yield key, found
        elif isinstance(value, int) and _RANKING.search(key):
            yield key, Found((value,))

    def _array(self, values: list[Value]) -> Found | None:
        """Read an array of identifiers, of objects, or of arrays of either."""
        if not values:
            return None
        if found := self._objects(values):
            return found
        if len(values) == 1 and isinstance(values[0], list):
            return self._array(values[0])
        rows = [value for value in values if isinstance(value, list) and len(value) == 2]
        if len(rows) == len(values) > 1:
            return self._rows(rows)
        numbers: list[int] = []
        for value in values:
            nested = value if isinstance(value, list) else [value]
            identifiers = [number for item in nested if (number := _number(item)) is not None]
            if len(identifiers) < len(nested):
                return None
            numbers += identifiers
        return Found(tuple(numbers)) if numbers else None

    def _rows(self, rows: list[list[Value]]) -> Found | None:
        """Read arrays of two: an identifier and its score."""
        identifiers = [number for first, _ in rows if (number := _number(first)) is not None]
        if len(identifiers) < len(rows):
            return None
        seconds = [second for _, second in rows]
        integers = [second for second in seconds if isinstance(second, int)]
        if len(integers) == len(seconds):
            return by_pairs(
                list(zip(identifiers, integers, strict=True)), self._documents, identified=False
            )
        return by_scores(list(zip(identifiers, map(_rating, seconds), strict=True)))

    def _objects(self, values: list[Value]) -> Found | None:
        """Read objects of one document each."""
        objects = [value for value in values if isinstance(value, Members)]
        if len(objects) < len(values):
            return None
        if all(len(item.items) == 1 for item in objects):
            merged = Members([item.items[0] for item in objects])
            if found := self._mapping(merged):
                return found
        identified = [(n, item) for item in objects if (n := _identifier(item)) is not None]
        # The last object of a cut answer may have lost its identifier.
        if not identified or len(identified) < len(objects) - 1:
            return None
        ranks = [_member(item, _RANK_WORDS) for _, item in identified]
        integers = [rank for rank in ranks if isinstance(rank, int)]
        if len(integers) == len(ranks) == len(set(integers)):
            return by_scores(
                [(n, Score(-rank)) for (n, _), rank in zip(identified, integers, strict=True)]
            )
        return by_scores([(n, _rating(_member(item, _SCORE_WORDS))) for n, item in identified])

    def _mapping(self, members: Members) -> Found | None:
        """Read an object whose keys are identifiers (values: scores) or ranks (values: ids)."""
        names = [name for name, _ in members.items]
        values = [value for _, value in members.items]
        if names and all(_RANK_KEY.fullmatch(name) for name in names):
            places = [int(re.sub(r"\D", "", name)[:9]) for name in names]
            numbers = [number for value in values if (number := _number(value)) is not None]
            if len(numbers) < len(values):
                return None
            return by_scores([(n, Score(-p)) for n, p in zip(numbers, places, strict=True)])
        identifiers = [number for name in names if (number := single(name)) is not None]
        if not identifiers or len(identifiers) < len(names):
            return None
        integers = [value for value in values if isinstance(value, int)]
        if len(integers) == len(values):
            identified = not all(name.strip().isdecimal() for name in names)
            pairs = list(zip(identifiers, integers, strict=True))
            return by_pairs(pairs, self._documents, identified=identified)
        if any(isinstance(value, list | Members) for value in values):
            return None
        return by_scores(list(zip(identifiers, map(_rating, values), strict=True)))


def _number(value: Value) -> int | None:
    return single(value) if isinstance(value, str) else value if isinstance(value, int) else None


def _rating(value: Value) -> Score | None:
    if isinstance(value, str):
        return score(value)
    return Score(value) if isinstance(value, int | float) else None


def _identifier(members: Members) -> int | None:
    """Return an object's identifier: of a member called so, else of one that is a document."""
    named = _number(_member(members, _IDENTIFIER_WORDS))
    return named if named is not None else _number(_member(members, _DOCUMENT_WORDS))


def _member(members: Members, words: frozenset[str]) -> Value:
    """Return the first member whose key ends in one of `words`: `doc_id`, `document.score`."""
    for name, value in members.items:
        word = _LAST_WORD.search(_CAMEL.sub("_", name).lower())
        if word and word[0] in words:
            return value
    return None
