"""The reranker: what is asked of a query, what becomes of it, and how it is counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchrank.answers import Reading, permutation, unanswered
from batchrank.calls import Answer, Usage
from batchrank.errors import StoppedError
from batchrank.prompts.render import Cut, QueryTexts
from batchrank.prompts.tokens import TokenCounter
from batchrank.ranking.outcomes import Asked
from batchrank.ranking.reranker import Reranker, failed, needs_ranking, tally, unranked
from batchrank.selection.filtering import first, scored
from batchrank.selection.selection import Selection
from batchrank.serving.slots import Priority
from batchrank.store.records import StoredAnswer
from batchrank.strategies.incremental import Merging
from batchrank.strategies.orders import forward
from batchrank.strategies.segmented import segmented
from batchrank.strategies.single import single
from batchrank.strategies.sliding import sliding
from batchrank.values import Document, Lineage, Query, QueryStatus, Request, Status, Tally, Window

MERGING = Merging(20, 10, lambda named: segmented(20, None, named, [forward]))


def request(count: int, *, text: str = "text") -> Request:
    """A query with candidates d0, d1, … and falling scores."""
    candidates = tuple(Document(f"d{n}", text, score=10.0 - n) for n in range(count))
    return Request(Query("q", "the query"), candidates)


def reading(*named: int, status: Status = Status.OK) -> Reading:
    """What an answer names."""
    return Reading(named, status)


class FakeAsker:
    """Reads every window as `answer` says, None for no answer; notes what it is asked."""

    def __init__(self, answer: Callable[[Window], Reading | None]) -> None:
        self.answer = answer
        self.rounds: list[Sequence[Window]] = []
        self.priorities: list[Priority] = []
        self.shown: list[list[str]] = []
        self._numbers: dict[Window, int] = {}

    async def ask_round(
        self,
        windows: Sequence[Window],
        texts: QueryTexts,
        priority: Priority,
        sent: Callable[[], None],
    ) -> list[Asked]:
        self.rounds.append(windows)
        self.priorities.append(priority)
        self.shown += [texts.shown(window) for window in windows]
        sent()
        return [self._ask(window) for window in windows]

    def _ask(self, window: Window) -> Asked:
        given = self.answer(window)
        if given is None:
            outcome = unanswered(window, "context")
            return Asked(window, outcome, window.wants, None, (), "too long", "context")
        number = self._numbers.setdefault(window, len(self._numbers) + 1)
        stored = StoredAnswer(number, Answer("", usage=Usage(10, 1)))
        outcome = permutation(window, given)
        return Asked(window, outcome, window.wants, stored, (stored,))


def reranker_of(
    asker: FakeAsker, *, depth: int = 100, window_size: int = 4, selection: Selection | None = None
) -> Reranker:
    """A segmented reranker."""
    strategy = segmented(window_size, None, window_size, [forward])
    cut = Cut(TokenCounter(), 50)
    return Reranker(strategy, MERGING, depth, cut, asker, selection or Selection())


def last_first(window: Window) -> Reading:
    """The prompt's order turned round, of what is wanted."""
    return reading(*range(len(window.shown), len(window.shown) - window.wants, -1))


async def test_a_query_is_ranked_and_counted() -> None:
    asker = FakeAsker(last_first)

    ranked = await reranker_of(asker).rank(request(3), 0)

    assert (ranked.qid, ranked.query) == ("q", "the query")
    assert ranked.docids == ("d0", "d1", "d2")
    assert ranked.scores == (10.0, 9.0, 8.0)
    assert ranked.order == (2, 1, 0)
    assert ranked.status is QueryStatus.OK
    assert ranked.tally == Tally(ok=1)
    assert (ranked.answers, ranked.faults) == ((1,), ())
    assert (ranked.calls, ranked.usage) == (1, Usage(10, 1))
    assert (ranked.error_kind, ranked.error) == (None, None)


async def test_candidates_below_the_depth_keep_their_order_and_are_never_shown() -> None:
    asker = FakeAsker(last_first)

    ranked = await reranker_of(asker, depth=3).rank(request(6), 0)

    assert ranked.order == (2, 1, 0, 3, 4, 5)
    assert {docid for windows in asker.rounds for w in windows for docid in w.shown} == {
        "d0",
        "d1",
        "d2",
    }


async def test_later_rounds_and_earlier_queries_go_first() -> None:
    asker = FakeAsker(last_first)

    await reranker_of(asker).rank(request(8), 7)

    assert asker.priorities == [(0, 7), (-1, 7)]


@pytest.mark.parametrize(
    "nothing_to_ask", [request(0), request(1), request(5, text=" \n"), request(5, text="")]
)
async def test_nothing_to_ask_is_no_call(nothing_to_ask: Request) -> None:
    asker = FakeAsker(last_first)

    ranked = await reranker_of(asker).rank(nothing_to_ask, 0)

    assert asker.rounds == []
    assert ranked == unranked(nothing_to_ask)
    assert ranked.status is QueryStatus.UNRANKED
    assert ranked.order == tuple(range(len(nothing_to_ask.candidates)))


def test_a_title_or_one_text_is_enough_to_ask() -> None:
    empty, titled = Document("a", ""), Document("b", "", title="a title")

    assert needs_ranking(Request(Query("q", ""), (empty, titled)), 10)
    assert needs_ranking(Request(Query("q", ""), (empty, Document("b", "x"))), 10)
    assert not needs_ranking(Request(Query("q", ""), (empty, titled)), 1)
    assert not needs_ranking(Request(Query("q", ""), (empty, empty, Document("b", "x"))), 2)


FALLBACK = reading(status=Status.FALLBACK)
REPAIRED = reading(2, 1, status=Status.REPAIRED)
OK = reading(2, 1)


@pytest.mark.parametrize(
    ("readings", "status"),
    [
        ((OK, OK, OK), QueryStatus.OK),
        ((OK, REPAIRED, OK), QueryStatus.REPAIRED),
        ((OK, REPAIRED, FALLBACK), QueryStatus.DEGRADED),
        ((FALLBACK, FALLBACK, FALLBACK), QueryStatus.DEGRADED),
        ((OK, None, OK), QueryStatus.DEGRADED),
        ((FALLBACK, None, None), QueryStatus.DEGRADED),
        ((None, None, None), QueryStatus.FAILED),
    ],
)
async def test_a_query_is_as_good_as_its_worst_window(
    readings: tuple[Reading | None, ...], status: QueryStatus
) -> None:
    left = list(readings)
    asker = FakeAsker(lambda _: left.pop(0))

    ranked = await reranker_of(asker).rank(request(8), 0)

    assert ranked.status is status
    assert sorted(ranked.order) == list(range(8))
    assert ranked.tally.windows == 3
    assert ranked.answers == tuple(0 if r is None else n for n, r in _numbered(readings))
    assert ranked.faults == ("too long",) * readings.count(None)
    if status is QueryStatus.FAILED:
        assert (ranked.error_kind, ranked.error) == ("context", "too long")
        assert ranked.order == tuple(range(8))
    else:
        assert (ranked.error_kind, ranked.error) == (None, None)


def _numbered(readings: tuple[Reading | None, ...]) -> list[tuple[int, Reading | None]]:
    """Each reading with the number of its answer, which those without one don't use up."""
    number = 0
    found = []
    for one in readings:
        number += one is not None
        found.append((number, one))
    return found


async def test_an_answer_that_two_windows_share_is_counted_once() -> None:
    asker = FakeAsker(last_first)
    strategy = segmented(4, None, 4, [forward, forward])

    ranked = await Reranker(
        strategy, MERGING, 100, Cut(TokenCounter(), 50), asker, Selection()
    ).rank(request(3), 0)

    assert ranked.answers == (1, 1)
    assert (ranked.calls, ranked.usage, ranked.tally) == (1, Usage(10, 1), Tally(ok=2))


@pytest.mark.parametrize("lineage", [None, Lineage(1.0, 1, 1, (0,), b"")])
async def test_a_query_whose_strategy_asks_nothing_is_unranked(lineage: Lineage | None) -> None:
    """As one window of a single document: there is nothing to put in order."""
    asker = FakeAsker(last_first)
    nothing = replace(MERGING, in_one=lambda named: single(1, named))
    reranker = Reranker(single(1, 10), nothing, 100, Cut(TokenCounter(), 50), asker, Selection())

    ranked = await reranker.rank(request(3), 0, lineage)

    assert asker.rounds == []
    assert (ranked.status, ranked.order) == (QueryStatus.UNRANKED, (0, 1, 2))
    assert (ranked.error_kind, ranked.error) == (None, None)


async def test_texts_are_shown_as_the_window_says() -> None:
    asker = FakeAsker(last_first)
    candidates = (Document("a", "first"), Document("b", "second", title="title"))
    strategy = sliding(4, 2)

    await Reranker(strategy, MERGING, 100, Cut(TokenCounter(), 50), asker, Selection()).rank(
        Request(Query("q", "the query"), candidates), 0
    )

    assert asker.shown == [["first", "title\nsecond"]]


async def test_a_query_that_is_stopped_has_no_ranking() -> None:
    def stop(_: Window) -> Reading:
        raise StoppedError("stopped")

    with pytest.raises(StoppedError):
        await reranker_of(FakeAsker(stop)).rank(request(8), 0)


def test_a_failed_query_keeps_its_candidates_and_says_why() -> None:
    ranked = failed(request(2), "json", "no JSON")

    assert ranked.status is QueryStatus.FAILED
    assert (ranked.error_kind, ranked.error) == ("json", "no JSON")
    assert ranked.order == (0, 1)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (reading(2, 1), Tally(ok=1)),
        (reading(1, 2), Tally(ok=1, unmoved=1)),
        (reading(1, status=Status.REPAIRED), Tally(repaired=1, unmoved=1, thin=1)),
        (reading(3, status=Status.REPAIRED), Tally(repaired=1, thin=1)),
        (reading(3, 2, status=Status.REPAIRED), Tally(repaired=1)),
        (reading(status=Status.FALLBACK), Tally(fallback=1)),
        (None, Tally(error=1)),
    ],
)
def test_windows_are_counted_by_outcome_and_by_what_they_are_worth(
    given: Reading | None, expected: Tally
) -> None:
    # Shown the other way round than believed: unmoved is what repeats the prompt.
    window = Window(("a", "b", "c", "d"), ("d", "c", "b", "a"), 3)

    asked = FakeAsker(lambda _: given)._ask(window)

    assert tally([asked]) == expected
    assert tally([asked, asked]) == expected + expected


class TestSelection:
    """What a job selects before the model sees it and after."""

    @given(
        count=st.integers(0, 14),
        top=st.integers(1, 14),
        depth=st.integers(1, 14),
        selection=st.builds(
            Selection,
            alpha=st.floats(0, 1),
            near_duplicates=st.none() | st.just(0.9),
            mmr=st.none() | st.floats(0, 1),
        ),
    )
    async def test_every_candidate_has_one_place_and_what_is_filtered_is_not_shown(
        self, count: int, top: int, depth: int, selection: Selection
    ) -> None:
        asker = FakeAsker(last_first)
        chosen = replace(selection, rules={"top": first(top), "min_score": scored(2.0)})

        ranked = await reranker_of(asker, depth=depth, selection=chosen).rank(request(count), 0)

        left = min(count, top, 9)  # the score of the ninth is 2
        assert sorted(ranked.order) == list(range(count))
        assert ranked.order[left:] == tuple(range(left, count))
        assert [place for place, _ in ranked.filtered] == list(range(left, count))
        shown = {docid for windows in asker.rounds for w in windows for docid in w.shown}
        assert shown <= {f"d{place}" for place in range(min(left, depth))}

    @given(count=st.integers(0, 14), depth=st.integers(1, 14), top=st.integers(14, 20))
    async def test_what_filters_nothing_and_trusts_the_model_changes_nothing(
        self, count: int, depth: int, top: int
    ) -> None:
        idle = Selection({"top": first(top)}, alpha=1, normalise="min-max", mmr=1)
        plain = await reranker_of(FakeAsker(last_first), depth=depth).rank(request(count), 0)

        ranked = await reranker_of(FakeAsker(last_first), depth=depth, selection=idle).rank(
            request(count), 0
        )

        assert ranked == plain

    async def test_a_failed_query_keeps_the_first_stage_with_what_is_filtered_below(self) -> None:
        selection = Selection({"min_score": scored(8.0)}, near_duplicates=0.5, mmr=0.5)

        ranked = await reranker_of(FakeAsker(lambda _: None), selection=selection).rank(
            request(5), 0
        )

        assert ranked.status is QueryStatus.FAILED
        assert ranked.order == (0, 1, 2, 3, 4)
        assert ranked.filtered == ((3, "min_score"), (4, "min_score"))
