"""Follows a job's last run for as long as an input repeats it, so that known lines cost little."""

from __future__ import annotations

from collections.abc import Sequence

from batchrank.store.records import Line, Run
from batchrank.store.store import Store

_CHUNK = 2000


class Repeated:
    """The lines of the run right before, which ended with a ranking for each of them.

    Lines that an input repeats are compared in the order in which they lie on the disk and copied
    in one statement; looking each up by its key, and checking its qid, takes ten times as long.
    """

    def __init__(self, store: Store, run: Run, earlier: Run) -> None:
        self.earlier = earlier
        """The run right before."""
        self._store = store
        self._run = run
        self._position = 0
        self._copied = 0
        self._ahead: list[tuple[Line, bool]] = []

    @classmethod
    async def find(cls, store: Store, run: Run) -> Repeated | None:
        """None where the last run of the job did not end, or left lines that lack a ranking.

        Nor where an older version kept no digests of its lines.
        """
        rows = await store.select(
            "SELECT id, (SELECT count(*) FROM lines WHERE run = runs.id AND digest) FROM runs "
            "WHERE job = ? AND id < ? ORDER BY id DESC LIMIT 1",
            (run.job, run.id),
        )
        if not rows:
            return None
        ((number, lines),) = rows
        earlier = await store.run(number)
        if earlier.exit not in (0, 3) or earlier.summary is None:
            return None
        ranked = sum(earlier.summary["queries"].values())
        return cls(store, run, earlier) if ranked == lines else None

    async def follow(self, found: Sequence[tuple[int, bytes]]) -> bool:
        """Whether the next lines are those of the earlier run, and none is to be ranked again.

        `found` are (input line, key of the ranking). Where it is so they count as taken over.
        """
        while len(self._ahead) < len(found) and await self._fetch():
            pass
        expected = self._ahead[: len(found)]
        if [(line.line, line.ranking) for line, _ in expected] != list(found):
            return False
        if any(retry for _, retry in expected):
            return False
        del self._ahead[: len(found)]
        self._position += len(found)
        return True

    async def _fetch(self) -> bool:
        """Read more of the earlier run's lines; whether there were any."""
        rows = await self._store.select(
            "SELECT position, line, qid, ranking, weight, digest, EXISTS (SELECT 1 FROM rankings "
            "INDEXED BY rankings_retry WHERE key = ranking AND retry) FROM lines "
            "WHERE run = ? AND position >= ? ORDER BY position LIMIT ?",
            (self.earlier.id, self._position + len(self._ahead), _CHUNK),
        )
        self._ahead += [(Line(*row[:-1]), bool(row[-1])) for row in rows]
        return bool(rows)

    async def flush(self) -> None:
        """Copy the lines that were taken over and are not yet the run's own."""
        if self._copied < self._position:
            await self._store.write_rows(
                "INSERT INTO lines (run, position, line, qid, ranking, weight, digest) "
                "SELECT ?, position, line, qid, ranking, weight, digest FROM lines "
                "WHERE run = ? AND position >= ? AND position < ?",
                [(self._run.id, self.earlier.id, self._copied, self._position)],
            )
        self._copied = self._position

    def rejoins(self, lines: Sequence[Line]) -> bool:
        """Whether lines that were taken in by themselves came out as in the earlier run.

        Then those behind them can be followed again.
        """
        self._position = self._copied = self._position + len(lines)
        expected = [line for line, _ in self._ahead[: len(lines)]]
        del self._ahead[: len(lines)]
        return list(lines) == expected

    async def is_whole(self, lines: int) -> bool:
        """Whether the earlier run has no more than these `lines`."""
        rows = await self._store.select(
            "SELECT 1 FROM lines WHERE run = ? AND position >= ? LIMIT 1", (self.earlier.id, lines)
        )
        return not rows
