"""The queries of a run, by what became of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass

from batchrank.keys import short_hash
from batchrank.store.packing import unpack
from batchrank.store.records import Run
from batchrank.store.store import Store
from batchrank.values import RankedQuery

_CHUNK = 200
FOUND = "lines JOIN rankings ON rankings.key = lines.ranking"
"""The lines that have a ranking, for the modules of this package."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a run's input has its ranking: lines, and the sum of their weights.

    Where the input `is_read` to its end `lines` are all of it, else there are at least so many.
    """

    done: int
    lines: int
    weight_done: float
    weight: float
    is_read: bool

    @property
    def is_complete(self) -> bool:
        """Whether nothing of the input is left."""
        return self.is_read and self.done == self.lines


async def coverage(store: Store, run: int) -> Coverage:
    """How much of a run's lines is done; a failed line that is tried again counts as done."""
    ((lines, weight, is_read),) = await store.select(
        "SELECT count(*), ifnull(sum(weight), 0), "
        "(SELECT lines IS NOT NULL OR ifnull(exit IN (0, 3), 0) FROM runs WHERE id = ?1) "
        "FROM lines WHERE run = ?1",
        (run,),
    )
    ((done, weight_done),) = await store.select(
        f"SELECT count(*), ifnull(sum(weight), 0) FROM {FOUND} WHERE run = ?",  # noqa: S608 - fixed
        (run,),
    )
    return Coverage(done, lines, weight_done, weight, bool(is_read))


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


async def known_oddities(store: Store, run: Run) -> list[tuple[list[str], int, list[str]]]:
    """What was odd about the lines of a run that an earlier one ranked, so that it read none.

    Each has sentences that go together, how many lines there are, and the qids of the first few.
    """
    odd = (
        "FROM lines JOIN rankings INDEXED BY rankings_odd ON key = ranking "
        "WHERE run = ? AND odd <> '' AND made_by <> run AND NOT retry"
    )
    found = []
    for told, count in await store.select(
        f"SELECT odd, count(*) {odd} GROUP BY odd ORDER BY min(position)",
        (run.id,),
    ):
        rows = await store.select(
            f"SELECT packed {odd} AND odd = ? ORDER BY position LIMIT 3",
            (run.id, told),
        )
        found.append((told.split("\n"), count, [unpack(row[0]).qid for row in rows]))
    return found


async def find_query(store: Store, run: int, qid: str) -> list[tuple[int, RankedQuery]]:
    """The lines of a run with this qid, as (input line, ranked query)."""
    rows = await store.select(
        f"SELECT line, packed FROM {FOUND} WHERE run = ? AND rankings.qid = ? "  # noqa: S608 - fixed
        "ORDER BY position",
        (run, short_hash(qid)),
    )
    return [(line, unpack(packed)) for line, packed in rows]


async def on_line(store: Store, run: int, line: int) -> list[tuple[int, RankedQuery]]:
    """What became of one line of a run's input, none where it has no ranking."""
    rows = await store.select(
        f"SELECT line, packed FROM {FOUND} WHERE run = ? AND line = ?",  # noqa: S608 - fixed
        (run, line),
    )
    return [(number, unpack(packed)) for number, packed in rows]


async def queries_of(store: Store, run: int, qids: Iterable[int]) -> list[RankedQuery]:
    """The rankings of a run under these qid hashes, as far as they are there."""
    rows = await store.select_in(
        f"SELECT packed FROM {FOUND} WHERE run = ? AND lines.qid",  # noqa: S608 - fixed
        qids,
        run,
    )
    return [unpack(row[0]) for row in rows]


async def bad_queries(store: Store, run: int, count: int) -> list[tuple[int, RankedQuery]]:
    """The first `count` queries of a run with a window that brought no usable ranking."""
    rows = await store.select(
        f"SELECT line, packed FROM {FOUND} WHERE run = ? AND fallback + error + thin > 0 "  # noqa: S608
        "ORDER BY position LIMIT ?",
        (run, count),
    )
    return [(line, unpack(packed)) for line, packed in rows]


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


async def asked_queries(store: Store, run: int, count: int) -> list[RankedQuery]:
    """The first `count` queries of a run that a model answered for."""
    rows = await store.select(
        f"SELECT packed FROM {FOUND} WHERE run = ? AND ok + repaired > 0 "  # noqa: S608 - fixed
        "ORDER BY position LIMIT ?",
        (run, count),
    )
    return [unpack(row[0]) for row in rows]


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


async def rankings(store: Store, keys: Iterable[bytes]) -> list[RankedQuery]:
    """The rankings with these keys, as far as they are there."""
    rows = await store.select_in("SELECT packed FROM rankings WHERE key", keys)
    return [unpack(row[0]) for row in rows]


async def show_instead(store: Store, run: int, qid: int, old: bytes, new: bytes) -> None:
    """Let the lines of a run that show one ranking show another, of the same query."""
    await store.write_rows(
        "UPDATE lines SET ranking = ? WHERE run = ? AND qid = ? AND ranking = ?",
        [(new, run, qid, old)],
    )


async def forget_answers(store: Store, numbers: Iterable[int]) -> None:
    """Let these answers be asked anew; they can still be looked at until then."""
    await store.write_rows(
        "UPDATE answers SET run = -1 WHERE id = ?", [(number,) for number in numbers]
    )
