"""What a ranking can build on: an earlier one, where little changed and not for too long."""

from __future__ import annotations

from dataclasses import replace

import pytest

from batchrank.ranking.incremental import MAX_STEPS, Earlier, Limits, lineage_of
from batchrank.ranking.reranker import unranked
from batchrank.values import Document, Lineage, Query, Request

LIMITS = Limits(change=0.3, age=1000, one_call=4)


def asked_for(*docids: str, query: str = "q", edited: str = "") -> Request:
    """A request whose documents say their docid, but for the `edited` one."""
    documents = (Document(d, f"text of {d}{' anew' * (d == edited)}") for d in docids)
    return Request(Query("1", query), tuple(documents))


def ranked(request: Request, *order: str, now: float = 0.0, steps: int = 0) -> Earlier:
    """What run 7 made of a request."""
    docids = [document.docid for document in request.candidates]
    lineage = replace(lineage_of(request, 100, None, LIMITS, now), steps=steps)
    return Earlier(
        7,
        replace(
            unranked(request),
            order=tuple(docids.index(docid) for docid in order),
            lineage=lineage,
        ),
    )


TEN = "abcdefghij"
LAST = ranked(asked_for(*TEN), *reversed(TEN))


def positions(lineage: Lineage, request: Request) -> str:
    """The docids taken over."""
    return "".join(request.candidates[place].docid for place in lineage.earlier)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (asked_for(*"xabcdefghi"), "ihgfedcba"),
        (asked_for(*"axbycdefgz"), "gfedcba"),
        (asked_for(*TEN, edited="e"), "jihgfdcba"),
        (asked_for(*"hgf"), "hgf"),
    ],
    ids=["one new", "three new", "one edited", "only lost some"],
)
def test_what_is_as_it_was_is_taken_over_in_its_order(request_: Request, expected: str) -> None:
    lineage = lineage_of(request_, 100, LAST, LIMITS, 5.0)

    assert positions(lineage, request_) == expected
    assert (lineage.run, lineage.steps, lineage.full_at) == (7, 1, 0.0)


@pytest.mark.parametrize(
    ("request_", "now", "earlier"),
    [
        (asked_for(*"wxyzabcdef"), 5.0, LAST),
        (asked_for(*TEN, query="another"), 5.0, LAST),
        (asked_for(*TEN), 1001.0, LAST),
        (asked_for(*TEN), 5.0, ranked(asked_for(*TEN), *TEN, steps=MAX_STEPS)),
        (asked_for(*TEN), 5.0, None),
        (asked_for(*TEN), 5.0, Earlier(7, unranked(asked_for(*TEN)))),
        (asked_for(*"abcx"), 5.0, LAST),
    ],
    ids=[
        "too much changed",
        "another question",
        "too old",
        "too many in a row",
        "never ranked",
        "ranked by another kind of job",
        "one window all the same",
    ],
)
def test_all_else_is_ranked_in_full(request_: Request, now: float, earlier: Earlier | None) -> None:
    lineage = lineage_of(request_, 100, earlier, LIMITS, now)

    assert (lineage.run, lineage.steps, lineage.full_at, lineage.earlier) == (0, 0, now, ())


def test_candidates_below_the_depth_were_never_ranked() -> None:
    request = asked_for(*TEN)
    earlier = ranked(request, *TEN)
    lineage = lineage_of(request, 8, None, LIMITS, 0.0)
    earlier = Earlier(7, replace(earlier.ranked, lineage=lineage))

    again = asked_for(*"abcdefgi")

    assert positions(lineage_of(again, 100, earlier, LIMITS, 1.0), again) == "abcdefg"


def test_where_one_call_is_enough_for_any_list_what_changed_is_asked_in_full() -> None:
    any_list = replace(LIMITS, one_call=None)
    changed, less = asked_for(*"xabcdefghi"), asked_for(*"hgf")

    assert lineage_of(changed, 100, LAST, any_list, 5.0).run == 0
    assert lineage_of(less, 100, LAST, any_list, 5.0).run == 7


def test_what_is_new_never_outnumbers_what_it_is_held_against() -> None:
    all_may_change = replace(LIMITS, change=1.0)

    half, most = asked_for(*"vwxyzabcde"), asked_for(*"uvwxyzabcd")

    assert positions(lineage_of(half, 100, LAST, all_may_change, 5.0), half) == "edcba"
    assert lineage_of(most, 100, LAST, all_may_change, 5.0).run == 0
