"""What runs of one job share: what was left out, what changed, what was accepted."""

from __future__ import annotations

import pytest

from batchrank.keys import short_hash
from batchrank.store.history import (
    Changes,
    changes,
    finish_reading,
    last_accepted,
    left_out,
    open_nights,
    pairs,
)
from batchrank.store.queries import Coverage, coverage, failed_queries
from batchrank.store.records import Line, Run
from batchrank.store.store import Store
from batchrank.store.waiting import Turn, Waiting, WaitingLines
from batchrank.values import QueryStatus, RankedQuery, Tally

JOB = b"job"


async def begin(store: Store, deadline: float | None = None) -> Run:
    return await store.begin_run(JOB, {"m": 1}, "in", "out", fresh=False, deadline=deadline)


async def read(store: Store, run: Run, *, made: str = "", **contents: str) -> None:
    """Let the run's input hold a line for each qid, with that content; `made` marks rankings."""
    lines = [
        Line(
            *(place, place + 1, short_hash(qid), f"{made}{content}".encode()),
            weight=place + 1,
            digest=short_hash(content),
        )
        for place, (qid, content) in enumerate(contents.items())
    ]
    await store.add_lines(run.id, lines)
    await finish_reading(store, run.id, len(lines))


async def rank(store: Store, run: Run, qid: str, content: str, *order: int) -> None:
    status = QueryStatus.OK if order else QueryStatus.FAILED
    places = tuple(range(len(order)))
    docids = tuple(f"d{place}" for place in places)
    ranked = RankedQuery(qid, "text", docids, (None,) * len(docids), order, status, Tally(ok=1))
    await store.add_ranking(content.encode(), run.job, ranked, retry=not order)


async def test_what_the_last_run_did_not_get_to_was_left_out(store: Store) -> None:
    first = await begin(store)
    await read(store, first, a="a1", b="b1", c="c1")
    await rank(store, first, "b", "b1", 0, 1)
    await store.end_run(first.id, 75, {})
    assert await coverage(store, first.id) == Coverage(1, 3, 2.0, 6.0, is_read=True)
    second = await begin(store)
    asked = [short_hash(qid) for qid in "abcx"]
    assert await left_out(store, second, asked) == {short_hash("a"), short_hash("c")}
    # A run that was killed before it had read its input says nothing of what it left out.
    third = await begin(store)
    assert await left_out(store, third, asked) == {short_hash("a"), short_hash("c")}


async def test_changed_new_and_missing_lines_are_told_apart(store: Store) -> None:
    first = await begin(store)
    await read(store, first, same="1", changed="2", gone="3")
    assert await changes(store, first) is None
    await store.end_run(first.id, 0, {})
    second = await begin(store)
    await read(store, second, same="1", changed="2b", new="4")
    assert await changes(store, second) == Changes(first.id, "in", changed=2, gone=1)


@pytest.mark.parametrize("stopped", [1, 4, 75, None])
async def test_an_input_is_compared_with_the_last_run_that_ended(
    store: Store, stopped: int | None
) -> None:
    async def stop(run: Run, **contents: str) -> None:
        await read(store, run, **contents)
        if stopped is not None:
            await store.end_run(run.id, stopped, {})

    await stop(await begin(store), a="1", b="2")
    # What goes on from a first run that was stopped has no night before it.
    first = await begin(store)
    await read(store, first, a="1", b="2")
    assert await changes(store, first) is None
    await store.end_run(first.id, 3, {})
    # However often the next night is stopped, it is new beside the one before.
    for _ in range(2):
        await stop(await begin(store), a="1", c="3")
    run = await begin(store)
    await read(store, run, a="1", c="3")
    assert await changes(store, run) == Changes(first.id, "in", changed=1, gone=1)


async def test_a_night_whose_deadline_has_passed_is_over(store: Store) -> None:
    late = await begin(store, deadline=100.0)
    await read(store, late, a="1")
    await store.end_run(late.id, 75, {})
    same_night = await begin(store, deadline=100.0)
    await read(store, same_night, a="1")
    await store.end_run(same_night.id, 75, {})
    assert await changes(store, same_night) is None
    next_night = await begin(store, deadline=200.0)
    await read(store, next_night, a="2")
    assert await changes(store, next_night) == Changes(same_night.id, "in", changed=1, gone=0)


async def test_what_became_of_a_line_is_no_change_of_it(store: Store) -> None:
    first = await begin(store)
    await read(store, first, a="1", b="2")
    await store.end_run(first.id, 0, {})
    again = await begin(store)
    await read(store, again, made="in another way", b="2", a="1")
    assert await changes(store, again) == Changes(first.id, "in", changed=0, gone=0)


async def test_nothing_is_told_where_the_earlier_lines_are_not_known(store: Store) -> None:
    older, gone = await begin(store), await begin(store)
    await store.add_lines(older.id, [Line(0, 1, 7, b"of an older version")])
    await finish_reading(store, older.id, 1)
    await store.end_run(older.id, 0, {})
    await read(store, gone, a="1")
    assert await changes(store, gone) is None
    await store.end_run(gone.id, 0, {})
    await store.write_rows("DELETE FROM lines WHERE run = ?", [(gone.id,)])
    run = await begin(store)
    await read(store, run, a="1")
    assert await changes(store, run) is None


async def test_rankings_are_compared_by_qid_with_the_last_accepted_run(store: Store) -> None:
    first = await begin(store)
    assert await last_accepted(store, first) is None
    await read(store, first, a="a1", b="b1")
    await rank(store, first, "a", "a1", 0, 1)
    await rank(store, first, "b", "b1", 1, 0)
    await store.end_run(first.id, 0, {})
    rejected = await begin(store)
    await store.end_run(rejected.id, 3, {})
    last = await begin(store)
    await read(store, last, b="b2", c="c1")
    await rank(store, last, "b", "b2", 0, 1)
    await rank(store, last, "c", "c1", 0, 1)
    assert await last_accepted(store, last) == first.id
    found = [(now.order, then.order) async for now, then in pairs(store, last.id, first.id)]
    assert found == [((0, 1), (1, 0))]


async def test_a_night_lasts_from_its_first_run_to_its_deadline(store: Store) -> None:
    assert await open_nights(store, JOB) == []
    first = await begin(store, deadline=100.0)
    again = await begin(store, deadline=100.0)
    assert await open_nights(store, JOB) == [(first.started, 100.0)]
    await store.end_run(again.id, 75, {})
    assert await open_nights(store, JOB) == [(first.started, 100.0)]
    # What failed, or had no deadline, is no end of the night.
    failed = await begin(store, deadline=100.0)
    await store.end_run(failed.id, 1, {})
    by_hand = await begin(store)
    await store.end_run(by_hand.id, 75, {})
    assert await open_nights(store, JOB) == [(first.started, 100.0)]
    other = await begin(store, deadline=70.0)
    await store.end_run(other.id, 75, {})
    assert await open_nights(store, JOB) == [(other.started, 70.0), (first.started, 100.0)]
    done = await begin(store, deadline=100.0)
    await store.end_run(done.id, 0, {})
    assert await open_nights(store, JOB) == []


async def test_failed_queries_come_in_order_however_many(store: Store) -> None:
    run = await begin(store)
    contents = {f"q{number}": f"c{number}" for number in range(450)}
    await read(store, run, **contents)
    for qid, content in contents.items():
        await rank(store, run, qid, content)
    lines = [line async for line, _ in failed_queries(store, run.id)]
    assert lines == list(range(1, 451))


async def test_lines_wait_by_turn_then_weight_then_place(store: Store) -> None:
    waiting = WaitingLines(store)
    await waiting.open()
    lines = [
        Waiting(turn, -float(weight), 100 * weight + turn * 1000 + place, place, 1)
        for place in range(100)
        for turn in Turn
        for weight in (0, 3, 2)
    ]
    await waiting.add(lines)
    found = [line async for chunk in waiting.by_urgency() for line in chunk]
    assert found == sorted(lines, key=lambda line: (line.turn, line.lightness, line.position))
    # The table goes with the process, and each run begins with an empty one.
    await waiting.open()
    assert [chunk async for chunk in waiting.by_urgency()] == []
