"""Filters remove what they name, with the reason, and never lose a document."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchrank.ranking.reranker import settled, unranked
from batchrank.selection.filtering import (
    Rule,
    dated,
    first,
    having,
    lacking,
    removed_by,
    restored,
    scored,
    without,
)
from batchrank.selection.selection import Selection
from batchrank.values import Document, Query, QueryStatus, Request

NIGHT = Document("night", "x", score=3.0, metadata={"source": "wiki", "year": 2024, "day": "2024"})
FORUM = Document("forum", "x", score=1.0, metadata={"source": "forum", "day": "2024-03-01"})
BARE = Document("bare", "x")
LATE = Document("late", "x", score=2.0, metadata={"day": "2024-12-31T23:59:59Z", "year": 2023.0})
DOCUMENTS = (NIGHT, FORUM, BARE, LATE)

RULES: Mapping[str, Rule] = {
    "top": first(9),
    "min_score": scored(0.5),
    "deny": lacking("kind", ["a", 1]),
    "language": having("language", ["en"]),
}


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """Up to 14 candidates with and without scores and metadata."""
    values: st.SearchStrategy[str | float] = st.sampled_from(["a", "en", 1, 2.5])
    metadata = st.dictionaries(st.sampled_from(["kind", "language"]), values)
    documents = (
        Document(f"d{place}", "x", None, draw(st.none() | st.floats(0, 1)), draw(metadata))
        for place in range(draw(st.integers(0, 14)))
    )
    return Request(Query("q", "text"), tuple(documents))


@pytest.mark.parametrize(
    ("rule", "passing"),
    [
        (first(2), "night forum"),
        (scored(2.0), "night late"),
        (having("source", ["wiki", "book"]), "night"),
        (having("year", [2023, 2024]), "night late"),
        (lacking("source", ["forum"]), "night bare late"),
        (dated("day", date(2024, 3, 1), None), "forum late"),
        (dated("day", None, date(2024, 12, 30)), "forum"),
        (dated("day", date(2024, 12, 31), date(2024, 12, 31)), "late"),
        (dated("year", date(1, 1, 1), None), ""),
    ],
)
def test_a_rule_lets_pass_what_shows_that_it_fits(rule: Rule, passing: str) -> None:
    gone = dict(removed_by({"rule": rule}, DOCUMENTS))
    left = [one.docid for place, one in enumerate(DOCUMENTS) if place not in gone]
    assert " ".join(left) == passing


def test_the_first_rule_that_is_not_met_is_the_reason() -> None:
    rules = {"top": first(2), "min_score": scored(2.0)}
    assert removed_by(rules, DOCUMENTS) == ((1, "min_score"), (2, "top"), (3, "top"))


@given(requests(), st.sets(st.sampled_from(sorted(RULES))))
def test_whatever_becomes_of_the_rest_nothing_is_lost(request: Request, names: set[str]) -> None:
    removed = removed_by({name: RULES[name] for name in names}, request.candidates)
    left = unranked(without(request, removed))

    whole = restored(left, request, removed)

    count = len(request.candidates)
    assert whole.docids == tuple(document.docid for document in request.candidates)
    assert whole.scores == tuple(document.score for document in request.candidates)
    assert sorted(whole.order) == list(range(count))
    assert whole.order[count - len(removed) :] == tuple(place for place, _ in removed)
    assert whole.kept == left.docids
    assert [whole.docids[place] for place in whole.order[: len(left.order)]] == [
        left.docids[place] for place in left.order
    ]


@given(requests())
def test_without_filters_a_request_is_as_it_was(request: Request) -> None:
    removed = Selection().removed(request.candidates)
    assert removed == ()
    assert without(request, removed) == request
    ranked = unranked(request)
    assert restored(ranked, request, removed) == ranked


def test_where_all_are_removed_there_is_nothing_to_ask() -> None:
    request = Request(Query("q", "text"), DOCUMENTS)
    nothing = Selection({"min_score": scored(9.0)})

    ranked = settled(request, 100, None, nothing)

    assert ranked is not None
    assert ranked.status is QueryStatus.UNRANKED
    assert ranked.order == (0, 1, 2, 3)
    assert ranked.filtered == tuple((place, "min_score") for place in range(4))


@pytest.mark.parametrize(
    ("wanted", "value", "same"),
    [
        (2019, 2019, True),
        (2019.0, "2019", True),
        (2019, "2019.0", True),
        (2019, " 2019 ", True),
        ("2019", 2019, True),
        (0.5, ".5", True),
        (1e3, "1e3", True),
        ("007", "7", False),
        ("7", 7, True),
        ("wiki", "wiki", True),
        ("wiki", "Wiki", False),
        (2019, "2019-01-01", False),
        (1000, "1_000", False),
        (float("inf"), "inf", False),
        (2019, "２０１９", False),
        (2019, None, False),
    ],
)
def test_numbers_are_what_texts_spell_and_texts_are_texts(
    wanted: str | float, value: str | float | None, same: bool
) -> None:
    metadata = {} if value is None else {"year": value}
    document = Document("d", "x", metadata=metadata)
    assert having("year", [wanted])(0, document) is same
    assert lacking("year", [wanted])(0, document) is not same
