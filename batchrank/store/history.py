"""What a run shares with earlier runs of its job, and what it has done so far."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from batchrank.store.packing import unpack
from batchrank.store.records import Run
from batchrank.store.store import Store
from batchrank.values import RankedQuery

_CHUNK = 200
FOUND = "lines JOIN rankings ON rankings.key = lines.ranking"
"""The lines that have a ranking, for the modules of this package."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a run's input has its ranking: lines, and the sum of their weights."""

    done: int
    lines: int
    weight_done: float
    weight: float


@dataclass(frozen=True, slots=True)
class Changes:
    """An input beside what it was in the last run that read all of it, in lines."""

    changed: int
    """Not there before, or not with this content."""
    gone: int
    """There before, and their qid is no longer."""


async def open_nights(store: Store, job_key: bytes) -> list[tuple[float, float]]:
    """When the nights of a job that left work began, and their deadlines; the latest first.

    Moments are seconds since the epoch. Runs without a deadline are of no night; a run that came to
    a verdict ended all that were before it.
    """
    return await store.select(
        "SELECT (SELECT min(started) FROM runs AS other "
        "WHERE other.job = runs.job AND other.deadline = runs.deadline), deadline FROM runs "
        "WHERE job = (SELECT id FROM jobs WHERE key = ?) AND deadline IS NOT NULL AND id > "
        "ifnull((SELECT max(id) FROM runs AS other WHERE other.job = runs.job AND exit IN (0, 3)), "
        "0) GROUP BY deadline ORDER BY max(id) DESC",
        (job_key,),
    )


async def fresh_since(store: Store, job_key: bytes) -> int:
    """The run from which on a job's rankings count; 0 for all, as of a job that is not known."""
    rows = await store.select("SELECT fresh_since FROM jobs WHERE key = ?", (job_key,))
    return int(rows[0][0]) if rows else 0


async def finish_reading(store: Store, run: int, lines: int) -> None:
    """Record that all of a run's input was read, however it will end."""
    await store.write_rows("UPDATE runs SET lines = ? WHERE id = ?", [(lines, run)])


async def left_out(store: Store, run: Run, qids: Iterable[int]) -> set[int]:
    """Which of these qid hashes the last run of the job that read its input did not get to."""
    rows = await store.select_in(
        "SELECT lines.qid FROM lines LEFT JOIN rankings AS found ON found.key = lines.ranking "
        "WHERE run = (SELECT max(id) FROM runs WHERE job = ? AND id < ? AND lines IS NOT NULL) "
        "AND found.key IS NULL AND lines.qid",
        qids,
        run.job,
        run.id,
    )
    return {row[0] for row in rows}


async def changes(store: Store, run: Run) -> Changes | None:
    """What is new in a run's input, by its raw lines, whatever became of them.

    Compared with the last run of an input of the same name, or with the last of any where there is
    none: many have the date in it. None where no earlier run of the job read its input to the end,
    or the last that did is not known by its lines any more.
    """
    rows = await store.select(
        "SELECT id, lines = (SELECT count(*) FROM lines WHERE run = runs.id AND digest) FROM runs "
        "WHERE job = ? AND shard IS ? AND id < ? AND lines IS NOT NULL "
        "ORDER BY input = ? DESC, id DESC LIMIT 1",
        (run.job, run.shard, run.id, run.input),
    )
    if not rows or not rows[0][1]:
        return None
    previous = rows[0][0]
    ((changed,),) = await store.select(
        "SELECT count(*) FROM (SELECT digest FROM lines WHERE run = ? "
        "EXCEPT SELECT digest FROM lines WHERE run = ?)",
        (run.id, previous),
    )
    ((gone,),) = await store.select(
        "SELECT count(*) FROM (SELECT qid FROM lines WHERE run = ? AND qid != 0 "
        "EXCEPT SELECT qid FROM lines WHERE run = ?)",
        (previous, run.id),
    )
    return Changes(changed, gone)


async def coverage(store: Store, run: int) -> Coverage:
    """How much of a run's lines is done; a failed line that is tried again counts as done."""
    ((lines, weight),) = await store.select(
        "SELECT count(*), ifnull(sum(weight), 0) FROM lines WHERE run = ?", (run,)
    )
    ((done, weight_done),) = await store.select(
        f"SELECT count(*), ifnull(sum(weight), 0) FROM {FOUND} WHERE run = ?",  # noqa: S608 - fixed
        (run,),
    )
    return Coverage(done, lines, weight_done, weight)


async def count_of_other_jobs(store: Store, run: Run) -> int:
    """Lines of a run that show a ranking of another job: those without its optional passes."""
    ((count,),) = await store.select(
        f"SELECT count(*) FROM {FOUND} WHERE run = ? AND rankings.job != ?",  # noqa: S608 - fixed
        (run.id, run.job),
    )
    return int(count)


async def count_of_incremental(store: Store, run: int) -> int:
    """Lines of a run that show a ranking which builds on an earlier one."""
    ((count,),) = await store.select(
        f"SELECT count(*) FROM {FOUND} WHERE run = ? AND base",  # noqa: S608 - fixed
        (run,),
    )
    return int(count)


async def latest_rankings(
    store: Store, run: Run, qids: Iterable[int]
) -> dict[int, tuple[int, RankedQuery]]:
    """The latest sound ranking of its job under each of these qid hashes, and the run it is of."""
    sound = "job = ? AND made_by >= ? AND status IN ('ok', 'repaired')"
    rows = await store.select_in(
        f"SELECT qid, made_by, packed FROM rankings AS one WHERE {sound} AND made_by = "  # noqa: S608 - fixed
        f"(SELECT max(made_by) FROM rankings WHERE {sound} AND qid = one.qid) AND qid",
        qids,
        *(run.job, run.fresh_since) * 2,
    )
    return {qid: (number, unpack(packed)) for qid, number, packed in rows}


async def finished_lines(
    store: Store, run: int, start: int, *, is_over: bool
) -> list[tuple[int, RankedQuery]]:
    """A run's output from the place `start` on, as far as it is ranked and at most a chunk.

    While the run is not over a ranking that it is to try again is not ready.
    """
    rows = await store.select(
        "SELECT position, line, packed, retry AND made_by <> run FROM lines "
        "LEFT JOIN rankings ON rankings.key = lines.ranking "
        "WHERE run = ? AND position >= ? ORDER BY position LIMIT 256",
        (run, start),
    )
    found = []
    for place, (position, line, packed, again) in enumerate(rows, start):
        if position != place or packed is None or (again and not is_over):
            break
        found.append((line, unpack(packed)))
    return found


async def remember_output(store: Store, run: int, state: Mapping[str, object]) -> None:
    """Keep how the output of a run was left."""
    # Not orjson: a file may have a name that is no Unicode.
    await store.write_rows("UPDATE runs SET written = ? WHERE id = ?", [(json.dumps(state), run)])


async def last_output(store: Store, run: Run) -> dict[str, Any] | None:
    """How the run of the job right before left its output, None where it wrote none."""
    rows = await store.select(
        "SELECT written FROM runs WHERE job = ? AND id < ? ORDER BY id DESC LIMIT 1",
        (run.job, run.id),
    )
    return json.loads(rows[0][0]) if rows and rows[0][0] else None


async def bad_queries(store: Store, run: int, count: int) -> list[tuple[int, RankedQuery]]:
    """The first `count` queries of a run with a window that brought no usable ranking."""
    rows = await store.select(
        f"SELECT line, packed FROM {FOUND} WHERE run = ? AND fallback + error + thin > 0 "  # noqa: S608
        "ORDER BY position LIMIT ?",
        (run, count),
    )
    return [(line, unpack(packed)) for line, packed in rows]


async def asked_queries(store: Store, run: int, count: int) -> list[RankedQuery]:
    """The first `count` queries of a run that a model answered for."""
    rows = await store.select(
        f"SELECT packed FROM {FOUND} WHERE run = ? AND ok + repaired > 0 "  # noqa: S608 - fixed
        "ORDER BY position LIMIT ?",
        (run, count),
    )
    return [unpack(row[0]) for row in rows]


async def on_line(store: Store, run: int, line: int) -> list[tuple[int, RankedQuery]]:
    """What became of one line of a run's input, none where it has no ranking."""
    rows = await store.select(
        f"SELECT line, packed FROM {FOUND} WHERE run = ? AND line = ?",  # noqa: S608 - fixed
        (run, line),
    )
    return [(number, unpack(packed)) for number, packed in rows]


async def failed_queries(store: Store, run: int) -> AsyncIterator[tuple[int, RankedQuery]]:
    """The failed queries of a run with their line numbers, in input order."""
    after = -1
    while rows := await store.select(
        f"SELECT position, line, packed FROM {FOUND} WHERE run = ? AND status = 'failed' "  # noqa: S608
        "AND position > ? ORDER BY position LIMIT ?",
        (run, after, _CHUNK),
    ):
        after = rows[-1][0]
        for _, line, packed in rows:
            yield line, unpack(packed)


async def queries_of(store: Store, run: int, qids: Iterable[int]) -> list[RankedQuery]:
    """The rankings of a run under these qid hashes, as far as they are there."""
    rows = await store.select_in(
        f"SELECT packed FROM {FOUND} WHERE run = ? AND lines.qid",  # noqa: S608 - fixed
        qids,
        run,
    )
    return [unpack(row[0]) for row in rows]


async def last_accepted(store: Store, run: Run) -> int | None:
    """The last run of the same job whose result was accepted, None where there is none."""
    ((number,),) = await store.select(
        "SELECT max(id) FROM runs WHERE job = ? AND id < ? AND exit = 0", (run.job, run.id)
    )
    return None if number is None else int(number)


async def pairs(
    store: Store, run: int, earlier: int
) -> AsyncIterator[tuple[RankedQuery, RankedQuery]]:
    """For each line of `run` whose qid `earlier` has too: its ranking now and then."""
    after = -1
    while rows := await store.select(
        "SELECT now.position, a.packed, b.packed FROM lines AS now "
        "JOIN lines AS then_ ON then_.run = ? AND then_.qid = now.qid "
        "JOIN rankings AS a ON a.key = now.ranking JOIN rankings AS b ON b.key = then_.ranking "
        "WHERE now.run = ? AND now.qid != 0 AND now.position > ? "
        "GROUP BY now.position ORDER BY now.position LIMIT ?",
        (earlier, run, after, _CHUNK),
    ):
        after = rows[-1][0]
        for _, now, then in rows:
            yield unpack(now), unpack(then)


async def forget_answers(store: Store, numbers: Iterable[int]) -> None:
    """Let these answers be asked anew; they can still be looked at until then."""
    await store.write_rows(
        "UPDATE answers SET run = -1 WHERE id = ?", [(number,) for number in numbers]
    )


async def show_instead(store: Store, run: int, qid: int, old: bytes, new: bytes) -> None:
    """Let the lines of a run that show one ranking show another, of the same query."""
    await store.write_rows(
        "UPDATE lines SET ranking = ? WHERE run = ? AND qid = ? AND ranking = ?",
        [(new, run, qid, old)],
    )


async def rankings(store: Store, keys: Iterable[bytes]) -> list[RankedQuery]:
    """The rankings with these keys, as far as they are there."""
    rows = await store.select_in("SELECT packed FROM rankings WHERE key", keys)
    return [unpack(row[0]) for row in rows]


async def last_pace(store: Store) -> float | None:
    """Prompt tokens a second of the last run that asked a model, its quiet hours left out.

    None where there is none.
    """
    rows = await store.select(
        "SELECT prompt_tokens / seconds FROM (SELECT "
        "json_extract(summary, '$.prompt_tokens') AS prompt_tokens, "
        "json_extract(summary, '$.seconds') - ifnull(json_extract(summary, '$.quiet_seconds'), 0) "
        "AS seconds, id FROM runs) "
        "WHERE prompt_tokens > 0 AND seconds > 0 ORDER BY id DESC LIMIT 1",
        (),
    )
    return float(rows[0][0]) if rows else None
