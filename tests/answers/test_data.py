"""Answers that are data: JSON of any shape, whole, cut or malformed."""

from __future__ import annotations

import pytest

from batchrank.values import Status
from tests.answers.reading import reading

_RANKS_312 = {
    "another key": '{"order": [3, 1, 2]}',
    "an array of strings": '["3", "[1]", "Document 2"]',
    "a string": '{"ranking": "[3] > [1] > [2]"}',
    "single quotes": "{'ranking': [3, 1, 2]}",
    "a trailing comma": '{"ranking": [3, 1, 2,]}',
    "no quotes": "{ranking: [3, 1, 2]}",
    "two opening braces": '{\n{\n"ranking": [3, 1, 2]\n}\n',
    "a fence and words": 'Here:\n```json\n{"ranking": [3, 1, 2]}\n```\nI ranked 2 of 3 low.',
    "within the schema": '{"type": "object", "properties": {"ranking": [3, 1, 2]}}',
    "beside a reason": '{"reason": "doc [1] has 2 facts", "ranking": [3, 1, 2]}',
    "twice": '{"ranking": [3, 1, 2]}\n{"ranking": [3, 1, 2]}',
    "twice, the second cut": '{"ranking": [3, 1, 2]}\n{"ranking": [3, 1',
    "nested": "[[3], [1], [2]]",
    "objects": '{"documents": [{"index": 3}, {"index": 1}, {"index": 2}]}',
    "objects by line": '{"id": 3}\n{"id": 1}\n{"id": 2}',
    "objects with labels": '[{"doc.id": "Document 3"}, {"doc.id": "Doc 1"}, {"doc.id": "2"}]',
    "a raw line break": '[{"id": 3, "t": "a\nb"}, {"id": 1, "t": ""}, {"id": 2, "t": ""}]',
    "scores": '[{"docId": 1, "score": 5}, {"docId": 2, "score": "1"}, {"docId": 3, "score": 9}]',
    "a score that can't be read": '[{"id": 3, "score": 1}, {"id": 1, "score": "?"}, {"id": 2}]',
    "ranks": '[{"id": 1, "rank": 2}, {"id": 2, "rank": 3}, {"id": 3, "rank": 1}]',
    "ranks as keys": '{"rank 1": 3, "rank 2": 1, "rank 3": 2}',
    "labels as keys": '{"[1]": 50, "[2]": 10, "[3]": 90}',
    "identifiers as keys": '{"1": 0.5, "2": 0.1, "3": 0.9}',
    "rows with scores": "[[1, 0.5], [2, 0.1], [3, 0.9]]",
    "a rerank API": '[{"index": 0, "score": 0.5}, {"index": 1, "score": 0.1}, '
    '{"index": 2, "score": 0.9}]',
    "a negative list beside it": '{"relevant": [3, 1, 2], "irrelevant": [1, 2, 3]}',
    "a cut object at the end": '{"results": [{"id": 3}, {"id": 1}, {"id": 2}, {"i',
}


@pytest.mark.parametrize("text", _RANKS_312.values(), ids=_RANKS_312.keys())
def test_data_is_read_and_counted_as_repaired(text: str) -> None:
    found = reading(text)
    assert found.named == (3, 1, 2)
    assert found.status is Status.REPAIRED
    assert "format" in found.notes


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"properties": {"ranking": {"items": {"enum": [1, 2, 3]}}}}', "no-ranking"),
        ('{"error": {"code": 3, "message": "no"}}', "no-ranking"),
        ('{"1": 3, "2": 1, "3": 2}', "ambiguous"),
        ('{"ranking": [3, 1, 2]}\n{"ranking": [1, 2, 3]}', "ambiguous"),
        ('{"a": [3, 1], "b": [2]}', "ambiguous"),
        ('{"ranking": []}', "no-ranking"),
        ("{}", "no-ranking"),
        ('{"ranking": [true, false, null]}', "no-ranking"),
        ('{"ranking": [0.5, 0.25]}', "no-ranking"),
    ],
)
def test_data_without_a_clear_ranking_is_a_fallback(text: str, reason: str) -> None:
    found = reading(text)
    assert found.status is Status.FALLBACK
    assert found.notes == (reason,)


def test_data_that_is_cut_loses_the_number_that_may_be_half() -> None:
    found = reading('{"ranking": [14, 2, 1', 20)
    assert found.named == (14, 2)
    assert found.notes == ("format", "cut", "missing")


def test_data_that_is_cut_after_a_whole_number_keeps_it() -> None:
    assert reading('{"ranking": [3, 1, 2').named == (3, 1, 2)
    assert reading('{"ranking": [3, 1, 2' + " \n" * 400, finish="length").named == (3, 1, 2)


def test_relevance_is_not_an_identifier_and_zero_is_dropped_beside_the_last() -> None:
    text = '{"documents": [{"number": 0, "relevance": 9}, {"number": 3, "relevance": 2}]}'
    assert reading(text).named == (3,)
