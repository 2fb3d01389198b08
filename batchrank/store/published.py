"""What a publication reads of a run."""

from __future__ import annotations

from collections.abc import Sequence

from batchrank.store.queries import FOUND
from batchrank.store.records import Run
from batchrank.store.store import Store

_MAPPED = 1 << 40
SAME_NIGHT_SECONDS = 18 * 3600.0
"""A night that began earlier is over, whether or not it came to its end: the next one begins."""


async def job_key_of(store: Store, run: Run) -> str:
    """The key of a run's job, in hexadecimal digits."""
    rows = await store.select("SELECT lower(hex(key)) FROM jobs WHERE id = ?", (run.job,))
    return str(rows[0][0])


async def read_by_mapping(store: Store) -> None:
    """Let SQLite read the file through memory: all of a run then takes half the time."""
    await store.select(f"PRAGMA mmap_size = {_MAPPED}", ())


async def count_rankings(store: Store, run: Run, statuses: Sequence[str]) -> int:
    """How many lines of a run have a ranking with one of these statuses."""
    if run.exit == 0 and run.summary and "queries" in run.summary:
        return sum(run.summary["queries"].get(status, 0) for status in statuses)
    marks = ",".join("?" * len(statuses))
    ((count,),) = await store.select(
        f"SELECT count(*) FROM {FOUND} WHERE run = ? AND status IN ({marks})",  # noqa: S608 - fixed
        (run.id, *statuses),
    )
    return int(count)


async def first_alike(store: Store, run: Run, since: float, exits: Sequence[int] = (0,)) -> int:
    """The first run since then (seconds since the epoch) that `run` only repeats.

    That is one that ended with one of `exits`, of the same job, input and output, with the same
    rankings in the same places; the run itself where there is none.
    """
    marks = ",".join("?" * len(exits))
    rows = await store.select(
        f"SELECT id FROM runs WHERE exit IN ({marks}) AND job = ? AND input = ? "  # noqa: S608 - fixed
        "AND output = ? AND id < ? AND started >= ? ORDER BY id",
        (*exits, run.job, run.input, run.output, run.id, since),
    )
    for (earlier,) in rows:
        ((differs,),) = await store.select(
            "SELECT EXISTS (SELECT 1 FROM lines AS mine LEFT JOIN lines AS its "
            "ON its.run = ?1 AND its.position = mine.position AND its.ranking = mine.ranking "
            "LEFT JOIN rankings ON rankings.key = mine.ranking "
            "WHERE mine.run = ?2 AND (its.run IS NULL OR made_by > ?1)) "
            "OR (SELECT count(*) FROM lines WHERE run = ?1) "
            "<> (SELECT count(*) FROM lines WHERE run = ?2)",
            (earlier, run.id),
        )
        if not differs:
            return int(earlier)
    return run.id


async def packed_rankings(
    store: Store, run: int, statuses: Sequence[str], after: int, limit: int
) -> list[tuple[int, bytes]]:
    """The next packed rankings with one of these statuses, each with its position in the run."""
    marks = ",".join("?" * len(statuses))
    return await store.select(
        f"SELECT position, packed FROM {FOUND} WHERE run = ? AND status IN ({marks}) "  # noqa: S608
        "AND position > ? ORDER BY position LIMIT ?",
        (run, *statuses, after, limit),
    )
