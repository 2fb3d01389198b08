"""Joins the stores of an input's shards into one, with which the whole input is ranked already."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from batchrank.errors import UsageError
from batchrank.formats.wording import counted, listed, quoted
from batchrank.maintenance.parts import Part, check_parts, existing, parts_of
from batchrank.results.filenames import NO_FILE
from batchrank.store.connection import store_errors
from batchrank.store.packing import pack, unpack
from batchrank.store.store import Store
from batchrank.values import Shard

_CHUNK = 500
_STOPPED = 75
_PACKED = 11
"""Where a row of rankings has its packed query; its job stands at 1."""


@dataclass(frozen=True, slots=True)
class Joined:
    """What a joined store holds, and in `remarks` a sentence for each thing that it lacks."""

    shards: int
    lines: int
    rankings: int
    answers: int
    size: int
    remarks: tuple[str, ...]


async def join(stores: Sequence[Path], target: Path) -> Joined:
    """Join `stores`, each of one or several shards, into the new file `target` (mode 0600).

    It holds all answers and rankings of all of them, and one run that shows the lines of their last
    ones. Nothing is judged: that is for a run about the whole input, which makes no call where the
    shards were complete. What is missing, or was rejected, is remarked upon. The stores are not
    changed, but for being brought up to date; whoever calls holds their locks. No part of the
    joined one stands under its name before it is whole and synced.

    Raises UsageError where stores are of different jobs, different splits or different inputs, or
    hold the same shard twice; StoreError.
    """
    for path in stores:
        store = await Store.open(path, create=True)  # looked through where it was killed
        await store.close()
    parts = await asyncio.to_thread(lambda: [part for path in stores for part in parts_of(path)])
    check_parts(parts)
    scratch = target.with_name(f".{target.name}.partial")
    await asyncio.to_thread(scratch.unlink, missing_ok=True)
    try:
        store = await Store.open(scratch, create=True)
        await store.close()
        joined = await asyncio.to_thread(_write, stores, parts, scratch)
        await asyncio.to_thread(_put, scratch, target)
    finally:
        await asyncio.to_thread(scratch.unlink, missing_ok=True)
    return replace(joined, size=(await asyncio.to_thread(target.stat)).st_size)


def _put(scratch: Path, target: Path) -> None:
    with store_errors(target):
        with scratch.open("rb+") as file:
            os.fsync(file.fileno())
        scratch.replace(target)


def _write(stores: Sequence[Path], parts: Sequence[Part], scratch: Path) -> Joined:
    with store_errors(scratch), closing(_opened(scratch)) as joined:
        for number, store in enumerate(stores):
            own = [part for part in parts if part.store == store]
            joined.execute("ATTACH ? AS part", (existing(store),))
            joined.execute("BEGIN")
            offset = _add_answers(joined, own[0].fresh_since, number)
            with closing(sqlite3.connect(existing(store), uri=True)) as source:
                _add_rankings(joined, source, offset)
            _add_models_and_lines(joined, own)
            joined.execute("COMMIT")
            joined.execute("DETACH part")
        count, whole = _add_run(joined, parts)

        def rows(table: str) -> int:
            ((found,),) = joined.execute(f"SELECT count(*) FROM {table}")  # noqa: S608 - fixed
            return int(found)

        remarks = tuple(_remarks(joined, parts))
        if not whole or remarks:
            joined.execute(
                "UPDATE runs SET lines = NULL, summary = json_replace(summary, '$.reasons', "
                "json(?))",
                (orjson.dumps([_joined_from(len(parts)), *remarks]).decode(),),
            )
        return Joined(len(parts), count, rows("rankings"), rows("answers"), 0, remarks)


def _opened(scratch: Path) -> sqlite3.Connection:
    joined = sqlite3.connect(scratch, isolation_level=None, uri=True)
    # If this process dies the file is thrown away: nothing of it has to be durable until its end.
    joined.execute("PRAGMA main.journal_mode = OFF")
    joined.execute("PRAGMA main.synchronous = OFF")
    joined.execute("CREATE TEMP TABLE met (old INTEGER PRIMARY KEY, new INTEGER)")
    joined.execute(
        "CREATE TEMP TABLE manifest (line INTEGER PRIMARY KEY, qid INTEGER, ranking BLOB, "
        "weight REAL, digest INTEGER, store BLOB)"
    )
    return joined


def _add_answers(joined: sqlite3.Connection, fresh_since: int, number: int) -> int:
    """Add a store's answers; by how much their numbers have grown.

    An answer that is there already is not added. One to the same request with another text, as
    models give, or that counts no more, is kept for the rankings that rest on it, under a key that
    no request has.
    """
    ((offset,),) = joined.execute("SELECT ifnull(max(id), 0) FROM main.answers")
    joined.execute("DELETE FROM temp.met")
    joined.execute(
        "INSERT INTO temp.met SELECT its.id, CASE WHEN (its.text, its.reasoning, its.finish, "
        "its.prompt_tokens, its.completion_tokens) = (mine.text, mine.reasoning, mine.finish, "
        "mine.prompt_tokens, mine.completion_tokens) AND its.scored IS mine.scored THEN mine.id "
        "END FROM part.answers AS its JOIN main.answers AS mine ON mine.key = its.key "
        "WHERE its.run >= ?",
        (fresh_since,),
    )
    joined.execute(
        "INSERT INTO main.answers SELECT id + :offset, "
        "CASE WHEN run < :since OR old THEN CAST(key || :store AS BLOB) ELSE key END, "
        "CASE WHEN run < :since OR old THEN -1 ELSE run END, text, reasoning, finish, "
        "prompt_tokens, completion_tokens, seconds, scored "
        "FROM part.answers LEFT JOIN temp.met ON old = id WHERE new IS NULL",
        {"offset": offset, "since": fresh_since, "store": f"store {number}"},
    )
    return int(offset)


def _add_rankings(joined: sqlite3.Connection, source: sqlite3.Connection, offset: int) -> None:
    """Add a store's jobs and rankings; one that is to be tried again gives way to one that isn't.

    Where stores began afresh at different runs, rankings of one are not found by the keys of the
    other: such a job starts from its answers alone, which are all there.
    """
    joined.execute(
        "INSERT OR IGNORE INTO main.jobs (key, settings, fresh_since) "
        "SELECT key, settings, fresh_since FROM part.jobs"
    )
    joined.execute(
        "UPDATE main.jobs SET fresh_since = 0 WHERE fresh_since <> "
        "(SELECT fresh_since FROM part.jobs AS its WHERE its.key = main.jobs.key)"
    )
    jobs = dict(
        joined.execute("SELECT its.id, mine.id FROM part.jobs AS its JOIN main.jobs AS mine "
                       "ON mine.key = its.key")
    )  # fmt: skip
    cursor = source.execute("SELECT * FROM rankings")
    while rows := cursor.fetchmany(_CHUNK):
        moved = _renumbered(joined, [row[_PACKED] for row in rows], offset)
        renewed = [
            (row[0], jobs[row[1]], *row[2:_PACKED], packed, *row[_PACKED + 1 :])
            for row, packed in zip(rows, moved, strict=True)
        ]
        joined.executemany(
            "DELETE FROM rankings WHERE key = ? AND retry > ?", [(row[0], row[3]) for row in rows]
        )
        marks = ",".join("?" * len(rows[0]))
        joined.executemany(f"INSERT OR IGNORE INTO rankings VALUES ({marks})", renewed)  # noqa: S608


def _renumbered(
    joined: sqlite3.Connection, packed: Sequence[bytes], offset: int
) -> Iterator[bytes]:
    """Packed queries with the numbers that their answers have in the joined store."""
    ranked = [unpack(one) for one in packed]
    numbers = orjson.dumps([number for one in ranked for number in one.answers]).decode()
    moved = dict(
        joined.execute(
            "SELECT old, new FROM temp.met WHERE new AND old IN (SELECT value FROM json_each(?))",
            (numbers,),
        )
    )
    for one in ranked:
        answers = tuple(
            moved.get(number, number + offset) if number else 0 for number in one.answers
        )
        yield pack(replace(one, answers=answers))


def _add_models_and_lines(joined: sqlite3.Connection, own: Sequence[Part]) -> None:
    joined.execute("INSERT OR IGNORE INTO main.models SELECT * FROM part.models")
    for part in own:
        twice = joined.execute(
            "SELECT line, store FROM part.lines JOIN temp.manifest USING (line) WHERE run = ?",
            (part.run,),
        ).fetchone()
        if twice:
            line, other = twice[0], Path(os.fsdecode(twice[1]))
            raise UsageError(
                f"{quoted(other)} and {quoted(part.store)} both hold line {line}, which no two "
                "shards of one input do: they were made of different inputs"
            )
        joined.execute(
            "INSERT INTO temp.manifest SELECT line, qid, ranking, weight, digest, ? "
            "FROM part.lines WHERE run = ?",
            (os.fsencode(part.store), part.run),
        )


def _add_run(joined: sqlite3.Connection, parts: Sequence[Part]) -> tuple[int, bool]:
    """Add the run that shows all lines; how many they are, and whether the inputs were all read."""
    number = max(part.run for part in parts)
    ((job, count),) = joined.execute(
        "SELECT id, (SELECT count(*) FROM temp.manifest) FROM jobs WHERE key = ?", (parts[0].job,)
    )
    joined.execute(
        "INSERT INTO runs (id, job, input, output, started, ended, exit, night, summary, "
        "lines) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            number,
            job,
            parts[0].input,
            NO_FILE,
            min(part.started for part in parts),
            time.time(),
            _STOPPED,
            _STOPPED,
            orjson.dumps(
                {"reasons": [_joined_from(len(parts))], "seconds": 0.0, "joined": len(parts)}
            ).decode(),
            count,
        ),
    )
    joined.execute(
        "INSERT INTO lines (run, position, line, qid, ranking, weight, digest) SELECT ?, "
        "row_number() OVER (ORDER BY line) - 1, line, qid, ranking, weight, digest "
        "FROM temp.manifest",
        (number,),
    )
    return count, all(part.lines is not None for part in parts)


def _joined_from(shards: int) -> str:
    return (
        f"joined from {counted(shards, 'shard', 'shards')} and not judged: `batchrank run` on "
        "the whole input goes on with it"
    )


def _remarks(joined: sqlite3.Connection, parts: Sequence[Part]) -> Iterator[str]:
    """What the shards lack of a whole and accepted night."""
    count = parts[0].shard.count
    there = {part.shard.index for part in parts}
    if missing := [str(Shard(index, count)) for index in range(count) if index not in there]:
        yield f"{'shards are' if len(missing) > 1 else 'a shard is'} missing: {listed(missing)}"
    for part in parts:
        name = f"shard {part.shard} ({part.store.name})"
        if part.exit == 3:
            yield f"{name} was rejected: {'; '.join(part.reasons)}"
        elif part.exit != 0:
            how = "was killed" if part.exit is None else f"ended with exit code {part.exit}"
            yield f"{name} {how}{''.join(f': {reason}' for reason in part.reasons)}"
    ((open_,),) = joined.execute(
        "SELECT count(*) FROM temp.manifest LEFT JOIN rankings ON key = ranking WHERE key IS NULL"
    )
    if open_:
        yield f"{counted(open_, 'line has', 'lines have')} no ranking yet"
