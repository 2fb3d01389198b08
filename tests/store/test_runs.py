"""Jobs, runs, their lines and rankings: what resuming, `--fresh` and outputs rest on."""

from __future__ import annotations

from pathlib import Path

import pytest

from batchrank.calls import Answer
from batchrank.errors import UsageError
from batchrank.keys import short_hash
from batchrank.store.profiles import recall, remember
from batchrank.store.queries import find_query
from batchrank.store.records import Known, Line, Run
from batchrank.store.store import Store
from batchrank.values import QueryStatus, RankedQuery, Tally

JOB = b"job key"
SETTINGS = {"strategy": "segmented", "window_size": 20}


def ranked(
    qid: str, status: QueryStatus = QueryStatus.OK, tally: Tally | None = None
) -> RankedQuery:
    """An outcome of two candidates."""
    return RankedQuery(
        qid, f"text of {qid}", ("a", "b"), (None, None), (1, 0), status, tally or Tally(ok=1)
    )


async def begin(store: Store, *, job: bytes = JOB, fresh: bool = False) -> Run:
    """A new run of a job."""
    return await store.begin_run(job, SETTINGS, "in.jsonl", "out.jsonl", fresh=fresh)


async def add(store: Store, run: Run, position: int, outcome: RankedQuery) -> bytes:
    """A line of a run with its ranking."""
    key = b"ranking of " + outcome.qid.encode()
    await store.add_lines(run.id, [Line(position, position + 1, short_hash(outcome.qid), key)])
    await store.add_ranking(key, run.job, outcome, retry=outcome.status is QueryStatus.FAILED)
    return key


async def lines_of(store: Store, run: Run) -> list[tuple[int, str]]:
    """The input lines and qids of a run's output."""
    return [(line, outcome.qid) async for chunk in store.rows(run.id) for line, outcome in chunk]


async def test_runs_of_one_job_share_it_and_are_numbered(store: Store) -> None:
    first, second, other = await begin(store), await begin(store), await begin(store, job=b"2")

    assert (first.id, second.id, other.id) == (1, 2, 3)
    assert first.job == second.job != other.job
    assert first.settings == SETTINGS
    assert [run.id for run in await store.runs()] == [3, 2, 1]
    assert (await store.run()).id == 3


async def test_a_run_that_ended_says_how(store: Store) -> None:
    run = await begin(store)
    await store.end_run(run.id, 3, {"reasons": ["bad"]})

    ended = await store.run(run.id)

    assert (ended.exit, ended.summary) == (3, {"reasons": ["bad"]})
    assert ended.ended is not None
    assert ended.ended >= ended.started


async def test_a_run_that_is_not_there_is_named(store: Store) -> None:
    with pytest.raises(UsageError, match="holds no run:"):
        await store.run()
    with pytest.raises(UsageError, match="holds no run 7;"):
        await store.run(7)


@pytest.mark.parametrize(
    ("exit_code", "interrupted"),
    [(None, True), (75, True), (4, False), (0, False), (3, False), (1, False)],
)
async def test_killed_and_stopped_runs_were_interrupted(
    store: Store, exit_code: int | None, interrupted: bool
) -> None:
    run = await begin(store)
    if exit_code is not None:
        await store.end_run(run.id, exit_code, {})

    assert await store.is_interrupted(JOB) is interrupted
    assert await store.is_interrupted(b"another") is False


async def test_lines_of_interrupted_runs_give_way_to_the_next(store: Store) -> None:
    killed = await begin(store)
    await add(store, killed, 0, ranked("q1"))
    of_other_job = await begin(store, job=b"2")
    await add(store, of_other_job, 0, ranked("q1"))

    ended = await begin(store)
    await add(store, ended, 0, ranked("q1"))
    await store.end_run(ended.id, 0, {})
    await begin(store)

    assert await lines_of(store, killed) == []
    assert await lines_of(store, of_other_job) == [(1, "q1")]
    assert await lines_of(store, ended) == [(1, "q1")]


async def test_rows_come_in_input_order_however_they_finished(store: Store) -> None:
    run = await begin(store)
    for position in (3, 1, 2, 0):
        await add(store, run, position, ranked(f"q{position}"))

    assert await lines_of(store, run) == [(1, "q0"), (2, "q1"), (3, "q2"), (4, "q3")]


async def test_rows_of_many_chunks_are_whole(store: Store) -> None:
    run = await begin(store)
    key = await add(store, run, 0, ranked("q"))
    await store.add_lines(run.id, [Line(n, n + 1, 0, key) for n in range(1, 1203)])

    assert [line for line, _ in await lines_of(store, run)] == list(range(1, 1204))


async def test_known_rankings_say_whose_they_are_and_whether_to_try_again(store: Store) -> None:
    run = await begin(store)
    done = await add(store, run, 0, ranked("q0"))
    failed = await add(store, run, 1, ranked("q1", QueryStatus.FAILED))

    assert await store.known([done, failed, b"unknown"]) == {
        done: Known(short_hash("q0"), retry=False),
        failed: Known(short_hash("q1"), retry=True),
    }


async def test_the_first_line_of_a_qid_is_the_one_that_is_seen(store: Store) -> None:
    run = await begin(store)
    later, first = Line(5, 6, 42, b"x"), Line(2, 3, 42, b"y")
    await store.add_lines(run.id, [later, first, Line(3, 4, 0, b"z")])

    assert await store.seen_qids(run.id, [42, 43]) == {42: first}
    assert await store.seen_qids(run.id + 1, [42]) == {}


async def test_a_query_is_found_on_all_its_lines(store: Store) -> None:
    run = await begin(store)
    key = await add(store, run, 0, ranked("q"))
    await store.add_lines(run.id, [Line(1, 2, 0, key)])
    await add(store, run, 2, ranked("other"))

    assert [line for line, _ in await find_query(store, run.id, "q")] == [1, 2]
    assert await find_query(store, run.id, "nobody") == []


async def test_totals_count_lines_by_status_and_windows_by_outcome(store: Store) -> None:
    run = await begin(store)
    tally = Tally(ok=3, repaired=2, fallback=1, error=1, thin=1, unmoved=2)
    key = await add(store, run, 0, ranked("q0", QueryStatus.DEGRADED, tally))
    await add(store, run, 1, ranked("q1"))
    await store.add_lines(run.id, [Line(2, 3, 0, key)])

    totals = await store.totals(run.id)

    assert totals.queries == {QueryStatus.DEGRADED: 2, QueryStatus.OK: 1}
    assert totals.tally == tally + tally + Tally(ok=1)


async def test_totals_of_nothing_are_nothing(store: Store) -> None:
    totals = await store.totals((await begin(store)).id)

    assert (totals.queries, totals.tally) == ({}, Tally())


async def test_fresh_discounts_a_job_s_answers_and_leaves_every_other(store: Store) -> None:
    first = await begin(store)
    await store.add_answer(b"request", first.id, Answer("old"))

    fresh = await begin(store, fresh=True)

    assert (first.fresh_since, fresh.fresh_since) == (0, fresh.id)
    assert await store.find_answer(b"request") is None
    await begin(store, job=b"2")
    assert await store.find_answer(b"request") is not None


async def test_fresh_holds_until_the_job_is_done(store: Store, path: Path) -> None:
    first = await begin(store)
    await store.add_answer(b"old", first.id, Answer("old"))
    fresh = await begin(store, fresh=True)
    await store.add_answer(b"new", fresh.id, Answer("new"))

    again = await Store.open(path)
    await begin(again)

    assert await again.find_answer(b"old") is None
    assert await again.find_answer(b"new") is not None
    await again.close()


async def test_a_server_is_remembered_by_what_was_asked_for(store: Store) -> None:
    await remember(store, "target", {"model": "m", "form": "json"})
    await remember(store, "target", {"model": "m2"})

    assert await recall(store, "target") == {"model": "m2"}
    assert await recall(store, "another") is None


async def test_a_run_that_is_dropped_leaves_the_one_before_as_the_last(store: Store) -> None:
    kept = await begin(store)
    await add(store, kept, 0, ranked("q"))
    await store.end_run(kept.id, 0, {})
    dropped = await begin(store)
    await store.add_lines(dropped.id, [Line(0, 1, 7, b"x")])

    await store.drop_run(dropped.id)

    assert (await store.run()).id == kept.id
    assert await store.select("SELECT run FROM lines", ()) == [(kept.id,)]
    assert (await begin(store)).id == dropped.id
