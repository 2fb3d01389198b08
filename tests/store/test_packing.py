"""A ranked query comes back from its bytes exactly as it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from batchrank.calls import Usage
from batchrank.store.packing import pack, unpack, unpack_briefs
from batchrank.values import Lineage, QueryStatus, RankedQuery, Tally
from tests.store.earlier import packed_by_version_1

COUNTS = st.integers(0, 10**6)
TEXTS = st.text(max_size=12)

LINEAGES = st.builds(
    Lineage,
    full_at=st.floats(0, 1e10),
    steps=COUNTS,
    run=COUNTS,
    earlier=st.lists(COUNTS, max_size=6).map(tuple),
    digests=st.binary(max_size=24),
)


@st.composite
def ranked_queries(draw: st.DrawFn) -> RankedQuery:
    """Any outcome of a query of up to 12 candidates."""
    count = draw(st.integers(0, 12))
    score = st.none() | st.floats(allow_nan=False, allow_infinity=False)
    answers = draw(st.lists(st.integers(0, 2**40), max_size=6))
    return RankedQuery(
        qid=draw(TEXTS),
        query=draw(TEXTS),
        docids=tuple(draw(st.lists(TEXTS, min_size=count, max_size=count, unique=True))),
        scores=tuple(draw(st.lists(score, min_size=count, max_size=count))),
        order=tuple(draw(st.permutations(range(count)))),
        status=draw(st.sampled_from(QueryStatus)),
        tally=Tally(*(draw(COUNTS) for _ in range(6))),
        answers=tuple(answers),
        faults=tuple(draw(TEXTS) for number in answers if number == 0),
        calls=draw(COUNTS),
        usage=Usage(draw(COUNTS), draw(COUNTS)),
        error_kind=draw(st.none() | TEXTS),
        error=draw(st.none() | TEXTS),
        reduced=draw(st.booleans()),
        lineage=draw(st.none() | LINEAGES),
        filtered=tuple((place, draw(TEXTS)) for place in range(draw(st.integers(0, count)))),
        again=tuple(draw(st.sets(st.integers(0, 40)))),
    )


@settings(deadline=None)
@given(ranked_queries())
def test_packing_loses_nothing(ranked: RankedQuery) -> None:
    assert unpack(pack(ranked)) == ranked


def test_a_hundred_candidates_take_less_than_two_kilobytes() -> None:
    ranked = RankedQuery(
        qid="q1",
        query="what is packed",
        docids=tuple(f"document-{number * 7919}" for number in range(100)),
        scores=tuple(20 - number / 8 for number in range(100)),
        order=tuple(reversed(range(100))),
        status=QueryStatus.OK,
    )

    assert len(pack(ranked)) < 2000
    assert len(pack(replace(ranked, scores=(None,) * 100))) < len(pack(ranked))


@given(ranked_queries())
def test_what_version_1_packed_is_read(ranked: RankedQuery) -> None:
    assert unpack(packed_by_version_1(ranked)) == ranked


@given(
    st.lists(ranked_queries(), max_size=3),
    st.sampled_from(["", "\\", '"', '","', '"]', "\n"]),
    st.sampled_from([pack, packed_by_version_1]),
)
def test_briefs_say_the_same(
    queries: list[RankedQuery], nasty: str, packing: Callable[[RankedQuery], bytes]
) -> None:
    """Also of docids and queries with what would end a string in it."""
    queries = [
        replace(
            ranked,
            query=ranked.query + nasty,
            docids=tuple(f"{nasty}{docid}{nasty}" for docid in ranked.docids),
        )
        for ranked in queries
    ]
    briefs = unpack_briefs([packing(ranked) for ranked in queries])
    assert [brief.query for brief in briefs] == [ranked.query for ranked in queries]
    assert [brief.length for brief in briefs] == [len(ranked.docids) for ranked in queries]
    assert [tuple(orjson.loads(brief.docids)) for brief in briefs] == [
        ranked.ranking for ranked in queries
    ]
