"""The lines of a run that are registered and not yet ranked, in the order of their urgency."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import astuple, dataclass
from enum import IntEnum

from batchrank.store.store import Store

_CHUNK = 256


class Turn(IntEnum):
    """Who goes before whom, whatever the weights."""

    CANARY = 0
    """Judged queries: if these come out badly the rest need not be ranked."""
    LEFT_OUT = 1
    """The last run of the job did not get to them."""
    NEW = 2


@dataclass(frozen=True, slots=True)
class Waiting:
    """A line that waits: `offset` and `length` say where its content is kept."""

    turn: int
    lightness: float
    position: int
    offset: int
    length: int


class WaitingLines:
    """A queue in a temporary table: it grows on disk and goes with the process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.count = 0
        """Lines that were added and not yet taken."""

    async def open(self) -> None:
        """Make the table; call it once, before anything else."""
        await self._store.write_rows("DROP TABLE IF EXISTS temp.waiting", [()])
        await self._store.write_rows(
            "CREATE TEMP TABLE waiting (turn INTEGER, lightness REAL, position INTEGER, "
            "offset INTEGER, length INTEGER, PRIMARY KEY (turn, lightness, position)) "
            "WITHOUT ROWID",
            [()],
        )

    async def add(self, lines: Iterable[Waiting]) -> None:
        """Let these wait too."""
        rows = [astuple(line) for line in lines]
        await self._store.write_rows("INSERT INTO temp.waiting VALUES (?, ?, ?, ?, ?)", rows)
        self.count += len(rows)

    async def by_urgency(self) -> AsyncIterator[list[Waiting]]:
        """All lines in chunks: by turn, the heaviest first, then as they stand in the input."""
        after: tuple[float, ...] = (-1, 0, 0)
        while rows := await self._store.select(
            "SELECT * FROM temp.waiting WHERE (turn, lightness, position) > (?, ?, ?) "
            "ORDER BY turn, lightness, position LIMIT ?",
            (*after, _CHUNK),
        ):
            after = rows[-1][:3]
            yield [Waiting(*row) for row in rows]
