"""Intake: every line has its place, known ones are not ranked again, bad ones fail by number."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from batchrank.calls import Form
from batchrank.errors import UsageError
from batchrank.formats.sources.source import Source
from batchrank.prompts.loading import load_template
from batchrank.ranking.job import Job
from batchrank.ranking.reranker import unranked
from batchrank.running.intake import Intake, NewQuery, Order
from batchrank.serving.preflight import Profile
from batchrank.spec.jobspec import JobSpec
from batchrank.store.records import Run
from batchrank.store.store import Store
from batchrank.values import QueryStatus, RankedQuery

PROFILE = Profile("fake", "m", "id", Form.TEXT, None, None, 20, 200, 1.0)
JOB = Job(JobSpec(), (load_template("direct-en"),), PROFILE)


def line(qid: str, *texts: str) -> bytes:
    """An input line with a candidate for each text, docids 1, 2, …"""
    return orjson.dumps({"qid": qid, "query": f"query {qid}", "documents": texts or ("a", "b")})


class Night:
    """A store and the file that its runs read."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.source = folder / "in.jsonl"
        self.store = store

    async def run(
        self,
        *lines: bytes,
        limit: int | None = None,
        job: Job = JOB,
        fresh: bool = False,
        order: Order | None = None,
    ) -> tuple[Run, Intake, list[NewQuery]]:
        """Begin a run over these lines and take all of them in."""
        _write(self.source, lines)
        run = await self.store.begin_run(
            job.key, job.settings, str(self.source), "out", fresh=fresh
        )
        intake = Intake(Source(str(self.source)), limit, self.store, run, job, order or Order())
        return run, intake, [new async for block in intake.blocks() for new in block]

    async def finish(self, run: Run, new: Sequence[NewQuery], *, retry: bool = False) -> None:
        """Keep a ranking for each of these queries, as a run would."""
        for query in new:
            ranked = replace(unranked(query.request), status=QueryStatus.OK)
            await self.store.add_ranking(query.key, run.job, ranked, retry=retry)

    async def rows(self, run: Run) -> list[tuple[int, RankedQuery]]:
        """The run's output so far."""
        return [row async for chunk in self.store.rows(run.id) for row in chunk]


def _write(path: Path, lines: Sequence[bytes]) -> None:
    path.write_bytes(b"\n".join(lines))


@pytest.fixture
async def night(tmp_path: Path) -> AsyncIterator[Night]:
    """An empty store."""
    store = await Store.open(tmp_path / "s.sqlite", create=True)
    yield Night(tmp_path, store)
    await store.close()


def qids(new: Sequence[NewQuery]) -> list[str]:
    """Whose queries are left to be ranked."""
    return [query.request.query.qid for query in new]


@pytest.mark.parametrize("by_urgency", [False, True])
async def test_what_was_read_and_not_begun_is_left(night: Night, by_urgency: bool) -> None:
    """Lines that need no ranking, and a second time the same line, are not among it."""
    order = Order(by_urgency=by_urgency)
    run, _, new = await night.run(line("a"))
    await night.finish(run, new)
    _, intake, new = await night.run(
        line("a"), line("b"), b"{", line("c"), line("b"), line("c", "x", "y"), order=order
    )
    assert (intake.lines, intake.left, len(new)) == (6, 2, 2)


async def test_new_queries_come_in_input_order_and_get_their_lines(night: Night) -> None:
    run, intake, new = await night.run(line("b"), b"", line("a"), line("c"))
    await night.finish(run, new)

    assert qids(new) == ["b", "a", "c"]
    assert (intake.lines, intake.known, intake.share_read) == (3, 0, 1.0)
    assert [(n, ranked.qid) for n, ranked in await night.rows(run)] == [
        (1, "b"),
        (3, "a"),
        (4, "c"),
    ]


async def test_finished_queries_are_known_again_and_still_have_their_rows(night: Night) -> None:
    run, _, new = await night.run(line("a"), line("b"))
    await night.finish(run, new[:1])

    later, intake, left = await night.run(line("c"), line("a"), line("b"))

    assert qids(left) == ["c", "b"]
    assert intake.known == 1
    assert [(n, ranked.qid) for n, ranked in await night.rows(later)] == [(2, "a")]


async def test_a_line_that_changed_is_a_new_query(night: Night) -> None:
    run, _, new = await night.run(line("a"))
    await night.finish(run, new)

    _, _, left = await night.run(line("a", "other", "texts"))

    assert qids(left) == ["a"]


async def test_another_job_knows_nothing_of_it(night: Night) -> None:
    run, _, new = await night.run(line("a"))
    await night.finish(run, new)
    other = replace(JOB, profile=replace(PROFILE, identity="another model"))

    _, _, left = await night.run(line("a"), job=other)

    assert qids(left) == ["a"]
    assert left[0].key != new[0].key


async def test_a_ranking_to_try_again_is_left_to_be_ranked(night: Night) -> None:
    run, _, new = await night.run(line("a"))
    await night.finish(run, new, retry=True)

    _, intake, left = await night.run(line("a"))

    assert qids(left) == ["a"]
    assert left[0].key == new[0].key
    assert intake.known == 0


async def test_fresh_knows_nothing_and_its_resumption_what_it_did(night: Night) -> None:
    run, _, new = await night.run(line("a"), line("b"))
    await night.finish(run, new)

    fresh, _, anew = await night.run(line("a"), line("b"), fresh=True)
    await night.finish(fresh, anew[:1])
    _, _, left = await night.run(line("a"), line("b"))

    assert (qids(anew), qids(left)) == (["a", "b"], ["b"])


@pytest.mark.parametrize("between", [0, 600])
async def test_the_same_line_twice_has_two_rows_of_one_ranking(night: Night, between: int) -> None:
    others = [line(f"other{n}") for n in range(between)]

    run, _, new = await night.run(line("a"), *others, line("a"))
    await night.finish(run, new)

    rows = [(n, ranked.status) for n, ranked in await night.rows(run) if ranked.qid == "a"]
    assert rows == [(1, QueryStatus.OK), (between + 2, QueryStatus.OK)]
    assert len({query.key for query in new if query.request.query.qid == "a"}) == 1


@pytest.mark.parametrize("between", [0, 600])
async def test_a_qid_with_other_content_fails_and_names_both_lines(
    night: Night, between: int
) -> None:
    others = [line(f"other{n}") for n in range(between)]

    run, _, new = await night.run(line("a"), *others, line("a", "x", "y"), line("a", "z"))

    assert qids(new).count("a") == 1
    failures = [(n, row) for n, row in await night.rows(run) if row.qid == "a"]
    assert [(n, row.status) for n, row in failures] == [
        (between + 2, QueryStatus.FAILED),
        (between + 3, QueryStatus.FAILED),
    ]
    for number, row in failures:
        assert row.error_kind == "duplicate"
        assert row.error is not None
        assert {"1", str(number)} <= set(row.error.replace(",", " ").replace(":", " ").split())
    assert failures[0][1].docids == ("1", "2"), "its candidates are known"


async def test_a_known_line_holds_its_qid_against_others(night: Night) -> None:
    run, _, new = await night.run(line("a"))
    await night.finish(run, new)

    later, _, left = await night.run(line("a"), line("a", "x", "y"))

    assert left == []
    assert [row.status for _, row in await night.rows(later)] == [
        QueryStatus.OK,
        QueryStatus.FAILED,
    ]


async def test_a_line_that_can_t_be_used_fails_and_the_rest_goes_on(night: Night) -> None:
    broken = b'{"qid": "b", "query": "q"}'

    run, intake, new = await night.run(line("a"), b'{"qid": ', broken, line("b"))
    await night.finish(run, new)

    assert qids(new) == ["a", "b"], "a line that failed holds no qid"
    rows = await night.rows(run)
    assert [(n, row.status) for n, row in rows] == [
        (1, QueryStatus.OK),
        (2, QueryStatus.FAILED),
        (3, QueryStatus.FAILED),
        (4, QueryStatus.OK),
    ]
    assert rows[1][1].error_kind == "json"
    assert rows[2][1].qid == "b"
    assert intake.lines == 4


async def test_bad_lines_fail_again_in_the_next_run(night: Night) -> None:
    await night.run(line("a"), b'{"qid": ')

    later, intake, _ = await night.run(line("a"), b'{"qid": ')

    assert [(n, row.status) for n, row in await night.rows(later)] == [(2, QueryStatus.FAILED)]
    assert intake.known == 0


async def test_a_limit_ends_it_early(night: Night) -> None:
    _, intake, new = await night.run(line("a"), b"", line("b"), line("c"), limit=2)

    assert qids(new) == ["a", "b"]
    assert intake.lines == 2


@pytest.mark.parametrize("content", [b"", b"\n\n", b"PK\x03\x04 not lines"])
async def test_what_is_no_input_at_all_is_refused(night: Night, content: bytes) -> None:
    with pytest.raises(UsageError):
        await night.run(content)


async def test_what_looks_odd_is_counted_by_what_it_is(night: Night) -> None:
    rising = orjson.dumps(
        {
            "qid": "a",
            "query": "q",
            "candidates": [
                {"docid": "1", "text": "x", "score": 1},
                {"docid": "2", "text": "y", "score": 2},
            ],
        }
    )

    _, intake, _ = await night.run(rising, rising.replace(b'"a"', b'"b"'), line("c"))

    (said,) = intake.query_warnings.lines()
    assert said.startswith("2 queries ('a', 'b'): scores rise")
