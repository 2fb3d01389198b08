"""What jobs keep in their SQLite file: answers, runs, lines and rankings."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

import aiosqlite
import orjson

from batchrank.calls import Answer, Usage
from batchrank.errors import LostServerError, StoppedError, UsageError
from batchrank.keys import short_hash
from batchrank.store.batcher import Batcher
from batchrank.store.connection import connect, store_errors
from batchrank.store.database import Database
from batchrank.store.packing import pack, pack_scored, unpack, unpack_scored
from batchrank.store.records import Known, Line, Run, StoredAnswer, Totals
from batchrank.values import QueryStatus, RankedQuery, Tally

_CHUNK = 500
"""Rows of one fetch."""
_STOPPED = (StoppedError.exit_code, LostServerError.exit_code)
"""How a run exits that was stopped and goes on."""


class Store(Database):
    """The answers, runs, lines and rankings of jobs; look-ups that come together share a query.

    Every method raises StoreError. A write is durable when its method returns.
    """

    def __init__(self, path: Path, connection: aiosqlite.Connection) -> None:
        super().__init__(path, connection)
        self._last_answer = 0
        self._lookups: Batcher[bytes, StoredAnswer | None] = Batcher(self._look_up)
        self._fresh_since = 0
        self._run = 0

    @classmethod
    async def open(cls, path: Path, *, create: bool = False) -> Store:
        """Open the store at `path`; with `create`, make it where there is none.

        Raises UsageError where there is no store, or something else.
        """
        connection = await connect(path, create=create)
        store = cls(path, connection)
        try:
            ((store._last_answer,),) = await store.select(
                "SELECT ifnull(max(id), 0) FROM answers", ()
            )
        except BaseException:
            await connection.close()  # its thread would keep the process from ending
            raise
        return store

    async def close(self) -> None:
        """Finish what is queued and close the file."""
        await self._lookups.drain()
        await super().close()

    # Answers

    async def find_answer(self, key: bytes) -> StoredAnswer | None:
        """The answer to the request with this key, None where it was never committed."""
        return await self._lookups.submit(key)

    async def add_answer(
        self, key: bytes, run: int, answer: Answer, *, patient: bool = False
    ) -> int:
        """Commit an answer and return its number; see `Batcher.submit`."""
        self._last_answer += 1
        number = self._last_answer
        await self.write(
            "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                number,
                key,
                run,
                answer.text.encode("utf-8", "surrogatepass"),
                answer.reasoning.encode("utf-8", "surrogatepass"),
                answer.finish,
                answer.usage.prompt_tokens,
                answer.usage.completion_tokens,
                round(answer.seconds, 4),
                pack_scored(answer.scored),
            ),
            patient=patient,
        )
        return number

    async def answers(self, numbers: Iterable[int]) -> dict[int, Answer]:
        """Stored answers by number; those that are gone are left out."""
        rows = await self.select_in("SELECT * FROM answers WHERE id", numbers)
        return {row[0]: _stored(row).answer for row in rows}

    async def _look_up(self, keys: Sequence[bytes]) -> Sequence[StoredAnswer | None]:
        rows = await self.select_in(
            "SELECT * FROM answers WHERE run >= ? AND key", dict.fromkeys(keys), self._fresh_since
        )
        found = {row[1]: _stored(row) for row in rows}
        return [found.get(key) for key in keys]

    # Jobs and runs

    async def begin_run(
        self,
        key: bytes,
        settings: Mapping[str, object],
        source: str,
        output: str,
        *,
        fresh: bool,
        deadline: float | None = None,
        shard: str | None = None,
        names: Mapping[str, str] = {},
    ) -> Run:
        """Register a run of the job with this key; `fresh`: what is there already doesn't count.

        The lines of earlier runs of the job that never ended are dropped, since this run replaces
        them, but for the last that had read its whole input: it tells what was left out.
        """
        job, fresh_since = await self.register_job(key, settings)
        ((number,),) = await self.select("SELECT ifnull(max(id), 0) + 1 FROM runs", ())
        if fresh:
            fresh_since = number
            await self.write("UPDATE jobs SET fresh_since = ? WHERE id = ?", (number, job))
        self._fresh_since = fresh_since
        self._run = number
        await self.write(
            "DELETE FROM lines WHERE run IN "
            "(SELECT id FROM runs WHERE job = ? AND (exit IS NULL OR exit IN (?, ?))) "
            "AND run IS NOT (SELECT max(id) FROM runs WHERE job = ? AND lines IS NOT NULL)",
            (job, *_STOPPED, job),
        )
        await self.write(
            "INSERT INTO runs (id, job, input, output, started, deadline, shard, names) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (number, job, source, output, time.time(), deadline, shard, _json(names)),
        )
        return await self.run(number)

    async def register_job(self, key: bytes, settings: Mapping[str, object]) -> tuple[int, int]:
        """A job's number, and the run from which on its answers count."""
        await self.write(
            "INSERT OR IGNORE INTO jobs (key, settings) VALUES (?, ?)",
            (key, _json(settings)),
        )
        ((job, fresh_since),) = await self.select(
            "SELECT id, fresh_since FROM jobs WHERE key = ?", (key,)
        )
        return job, fresh_since

    async def is_interrupted(self, key: bytes) -> bool:
        """Whether the latest run of the job with this key was stopped or killed before its end.

        Not one that lacked a server: whether that is fit now is to be seen first.
        """
        rows = await self.select(
            "SELECT exit IS NULL OR exit = ? FROM runs WHERE job = "
            "(SELECT id FROM jobs WHERE key = ?) ORDER BY id DESC LIMIT 1",
            (StoppedError.exit_code, key),
        )
        return bool(rows and rows[0][0])

    async def drop_run(self, run: int) -> None:
        """Forget a run that turned out to be none of its job, before it asked anything."""
        await self.write("DELETE FROM lines WHERE run = ?", (run,))
        await self.write("DELETE FROM runs WHERE id = ?", (run,))

    async def end_run(
        self, run: int, exit_code: int, summary: Mapping[str, object], *, goes_on: bool = False
    ) -> None:
        """Record how a run ended, and so its night, unless that `goes_on` until `end_night`."""
        night = None if goes_on else exit_code
        await self.write(
            "UPDATE runs SET ended = ?, exit = ?, summary = ?, night = ? WHERE id = ?",
            (time.time(), exit_code, _json(summary), night, run),
        )

    async def end_night(self, run: int, exit_code: int) -> None:
        """Record how a run ended with all the steps after it."""
        await self.write("UPDATE runs SET night = ? WHERE id = ?", (exit_code, run))

    async def run(self, number: int | None = None) -> Run:
        """A run by its number, the latest without one; UsageError where there is none."""
        sql = (
            "SELECT runs.id, job, settings, input, output, started, ended, exit, summary, "
            "fresh_since, deadline, steps, shard, night, names "
            "FROM runs JOIN jobs ON jobs.id = runs.job "
        )
        if number is None:
            rows = await self.select(f"{sql} ORDER BY runs.id DESC LIMIT 1", ())
        else:
            rows = await self.select(f"{sql} WHERE runs.id = ?", (number,))
        if not rows:
            if number is None:
                raise UsageError(f"store {self.path} holds no run: `batchrank run` makes the first")
            see = f"`batchrank status --runs --store {quote(str(self.path))}`"
            raise UsageError(f"store {self.path} holds no run {number}; see {see}")
        identity, job, settings, source, output, started, ended, exit_code, summary = rows[0][:9]
        fresh_since, deadline, steps, shard, night, names = rows[0][9:]
        return Run(
            identity,
            job,
            orjson.loads(settings),
            source,
            output,
            started,
            ended,
            exit_code,
            orjson.loads(summary) if summary else None,
            fresh_since,
            deadline,
            orjson.loads(steps),
            shard,
            night,
            orjson.loads(names),
        )

    async def end_step(self, run: int, name: str, told: str) -> None:
        """Record how a step after a run ended, in a word for people."""
        await self.write(
            "UPDATE runs SET steps = json_set(steps, '$.' || ?, ?) WHERE id = ?",
            (name, told, run),
        )

    async def runs(self) -> list[Run]:
        """All runs, the latest first."""
        rows = await self.select("SELECT id FROM runs ORDER BY id DESC", ())
        return [await self.run(row[0]) for row in rows]

    # Rankings and lines

    async def known(self, keys: Iterable[bytes]) -> dict[bytes, Known]:
        """Which of these rankings are there."""
        rows = await self.select_in(
            "SELECT key, qid, retry, fallback > 0 FROM rankings WHERE key", keys
        )
        return {key: Known(qid, bool(retry), bool(fell)) for key, qid, retry, fell in rows}

    async def add_ranking(
        self, key: bytes, job: int, ranked: RankedQuery, *, retry: bool, odd: Sequence[str] = ()
    ) -> None:
        """Commit a query's outcome, and the sentences on what is `odd` about its line."""
        await self.write(
            "INSERT OR REPLACE INTO rankings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(key, job, short_hash(ranked.qid), retry, ranked.status),
                *ranked.tally.counts,
                pack(ranked),
                self._run,
                ranked.lineage.run if ranked.lineage else 0,
                "\n".join(odd),
            ),
            patient=True,
        )

    async def seen_qids(self, run: int, qids: Iterable[int]) -> dict[int, Line]:
        """For each of these qid hashes that a line of the run has: the first such line."""
        found: dict[int, Line] = {}
        for row in await self.select_in(
            "SELECT position, line, qid, ranking, weight, digest FROM lines WHERE run = ? AND qid",
            qids,
            run,
        ):
            line = Line(*row)
            if line.qid not in found or line.position < found[line.qid].position:
                found[line.qid] = line
        return found

    async def add_lines(self, run: int, lines: Iterable[Line]) -> None:
        """Commit the next lines of a run."""
        await self.write_rows(
            "INSERT INTO lines VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (run, line.position, line.line, line.qid, line.ranking, line.weight, line.digest)
                for line in lines
            ],
        )

    async def totals(self, run: int) -> Totals:
        """A run's queries by status and its windows by how they ended."""
        rows = await self.select(
            "SELECT status, count(*), sum(ok), sum(repaired), sum(fallback), sum(error), "
            "sum(thin), sum(unmoved) FROM lines JOIN rankings ON rankings.key = lines.ranking "
            "WHERE run = ? GROUP BY status",
            (run,),
        )
        return Totals(
            {QueryStatus(row[0]): row[1] for row in rows},
            sum((Tally(*row[2:]) for row in rows), Tally()),
        )

    async def rows(self, run: int) -> AsyncIterator[list[tuple[int, RankedQuery]]]:
        """The run's output in input order, in chunks of (input line, ranked query)."""
        with store_errors(self.path):
            async with self._connection.execute(
                "SELECT line, packed FROM lines JOIN rankings ON rankings.key = lines.ranking "
                "WHERE run = ? ORDER BY position",
                (run,),
            ) as cursor:
                while rows := await cursor.fetchmany(_CHUNK):
                    yield [(line, unpack(packed)) for line, packed in rows]


def _json(value: Mapping[str, object]) -> str:
    return orjson.dumps(value).decode()


def _stored(row: Sequence[Any]) -> StoredAnswer:
    number, _, _, text, reasoning, finish, prompt_tokens, completion_tokens, seconds, scored = row
    answer = Answer(
        text.decode("utf-8", "surrogatepass"),
        reasoning.decode("utf-8", "surrogatepass"),
        finish,
        Usage(prompt_tokens, completion_tokens),
        seconds,
        unpack_scored(scored),
    )
    return StoredAnswer(number, answer)
