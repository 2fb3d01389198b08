"""An input that repeats the last run is taken over from it, and comes out all the same."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from batchrank.calls import Form
from batchrank.formats.sources.source import Source
from batchrank.prompts.loading import load_template
from batchrank.ranking.job import Job
from batchrank.ranking.reranker import unranked
from batchrank.running.intake import Intake, NewQuery, Order
from batchrank.serving.preflight import Profile
from batchrank.spec.jobspec import JobSpec
from batchrank.store.records import Run
from batchrank.store.store import Store
from batchrank.values import QueryStatus

PROFILE = Profile("fake", "m", "id", Form.TEXT, None, None, 20, 200, 1.0)
JOB = Job(JobSpec(), (load_template("direct-en", "direct"),), PROFILE)


def line(qid: int, content: int = 0) -> bytes:
    """An input line."""
    documents = [f"a{content}", "b"]
    return orjson.dumps({"qid": str(qid), "query": f"query {qid}", "documents": documents})


async def night(
    store: Store, folder: Path, lines: Sequence[bytes], *, ends: bool, fails: int = -1
) -> tuple[Run, Intake, list[NewQuery]]:
    """A run that ranks all of `lines`; the qid `fails` is to be tried again."""
    source = folder / "in.jsonl"
    source.write_bytes(b"\n".join(lines))
    run = await store.begin_run(JOB.key, JOB.settings, str(source), "out", fresh=False)
    intake = Intake(Source(str(source)), None, store, run, JOB, Order())
    new = [query async for block in intake.blocks() for query in block]
    for query in new:
        failed = query.request.query.qid == str(fails)
        status = QueryStatus.FAILED if failed else QueryStatus.OK
        ranked = replace(unranked(query.request), status=status)
        await store.add_ranking(query.key, run.job, ranked, retry=failed)
    if ends:
        totals = await store.totals(run.id)
        queries = {str(status): count for status, count in totals.queries.items()}
        await store.end_run(run.id, 0, {"queries": queries})
    return run, intake, new


async def kept(store: Store, run: Run) -> list[tuple[object, ...]]:
    """The lines of a run."""
    return await store.select(
        "SELECT position, line, qid, ranking, weight, digest FROM lines WHERE run = ?", (run.id,)
    )


def changed(lines: list[bytes], rng: random.Random) -> list[bytes]:
    """The same lines with a few edits: lost, new, edited, repeated, moved, blank."""
    lines = list(lines)
    for _ in range(rng.randint(0, 2)):
        place = rng.randrange(len(lines))
        match rng.randrange(6):
            case 0:
                del lines[place]
            case 1:
                lines.insert(place, line(100 + place))
            case 2:
                lines[place] = line(place, content=1)
            case 3:
                lines.insert(place, rng.choice(lines))
            case 4:
                lines[place] = line(rng.randrange(10), content=3)  # the qid of another
            case 5:
                lines.insert(place, b"")
    return lines


@pytest.mark.parametrize("seed", range(16))
async def test_what_is_followed_comes_out_as_if_looked_up(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("batchrank.formats.lines._BLOCK_LINES", 2)
    rng = random.Random(seed)
    first = [line(number) for number in range(10)]
    if seed % 2:
        first[rng.randrange(10)] = b"no JSON"
    if seed % 3 == 0:
        first.insert(rng.randrange(10), line(3, content=2))
    second = changed(first, rng)
    found = []
    for follows in (True, False):
        store = await Store.open(tmp_path / f"{follows}.sqlite", create=True)
        await night(store, tmp_path, first, ends=follows, fails=-1 if seed % 4 else 4)
        run, intake, new = await night(store, tmp_path, second, ends=False)
        asked = [query.request.query.qid for query in new]
        found.append((await kept(store, run), asked, intake.lines, intake.known))
        await store.close()

    assert found[0] == found[1]
    assert found[0][2] == sum(1 for one in second if one)


async def test_only_an_input_that_is_the_same_throughout_repeats_a_run(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "s.sqlite", create=True)
    lines = [line(number) for number in range(5)]
    first, _, _ = await night(store, tmp_path, lines, ends=True)

    _, again, _ = await night(store, tmp_path, lines, ends=True)
    assert again.repeats == await store.run(first.id)
    assert again.known == 5
    _, shorter, _ = await night(store, tmp_path, lines[:4], ends=True)
    assert shorter.repeats is None
    _, other, new = await night(store, tmp_path, [*lines[:4], line(4, 1)], ends=False)
    assert other.repeats is None
    assert len(new) == 1
    # That run did not end: what it left may differ from what its predecessor counted.
    _, after, _ = await night(store, tmp_path, lines[:4], ends=True)
    assert after.repeats is None
    await store.close()


async def test_a_qid_that_an_edited_line_takes_is_missed_by_its_old_holder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("batchrank.formats.lines._BLOCK_LINES", 2)
    store = await Store.open(tmp_path / "s.sqlite", create=True)
    lines = [line(number) for number in range(8)]
    await night(store, tmp_path, lines, ends=True)
    lines[2] = line(6, content=1)

    run, _, new = await night(store, tmp_path, lines, ends=False)

    assert [query.request.query.qid for query in new] == ["6"]
    rows = [ranked async for chunk in store.rows(run.id) for _, ranked in chunk]
    assert [ranked.error_kind for ranked in rows] == [None] * 6 + ["duplicate", None]
    await store.close()
