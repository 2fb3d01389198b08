"""What a run shares with earlier runs of its job: nights, lines, rankings, outputs."""

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


@dataclass(frozen=True, slots=True)
class Changes:
    """An input beside what it was in an earlier run of its job that read all of it, in lines."""

    run: int
    """The earlier run."""
    input: str
    """Of the earlier run: its name, as it was shown."""
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
    none: many have the date in it. Only with one that read its input to the end and is over: what
    was stopped is the same night, as far as it came, unless its deadline has passed since. None
    where there is none, or an older version did not keep its lines.
    """
    rows = await store.select(
        "SELECT id, input FROM runs WHERE job = ? AND shard IS ? AND id < ? AND lines IS NOT NULL "
        "AND (exit IN (0, 3) OR (deadline < ? AND deadline IS NOT ?)) "
        "AND EXISTS (SELECT 1 FROM lines WHERE run = runs.id AND digest) "
        "ORDER BY input = ? DESC, id DESC LIMIT 1",
        (run.job, run.shard, run.id, run.started, run.deadline, run.input),
    )
    if not rows:
        return None
    ((previous, name),) = rows
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
    return Changes(previous, name, changed, gone)


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


async def last_accepted(store: Store, run: Run) -> int | None:
    """The last run of the same job whose result was accepted, None where there is none."""
    ((number,),) = await store.select(
        "SELECT max(id) FROM runs WHERE job = ? AND id < ? AND exit = 0", (run.job, run.id)
    )
    return None if number is None else int(number)


async def taken_over_by(store: Store, run: Run) -> int | None:
    """The run that went on from `run` and shows its lines now, None where none does."""
    if run.exit not in (None, 75):
        return None
    rows = await store.select(
        "SELECT min(id) FROM runs AS later WHERE job = ? AND id > ? "
        "AND EXISTS (SELECT 1 FROM lines WHERE run = later.id) "
        "AND NOT EXISTS (SELECT 1 FROM lines WHERE run = ?)",
        (run.job, run.id, run.id),
    )
    return None if rows[0][0] is None else int(rows[0][0])


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
