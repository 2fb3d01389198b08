"""Reads what can be measured: TREC runs, batchrank's output and input, and runs in a store."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

import orjson

from batchrank.errors import LineError, UsageError
from batchrank.formats.requests import parse_request
from batchrank.formats.trec import Line, numbered_lines, read_trec_line
from batchrank.formats.wording import quoted, shown
from batchrank.measuring.nights import Spending, night_of, spending_of
from batchrank.metrics.evaluation import Scores
from batchrank.store.store import Store
from batchrank.values import QueryStatus, RankedQuery, Ranking

_SQLITE = b"SQLite format 3\0"


@dataclass(slots=True)
class MeasuredRun:
    """A run as it is measured.

    `scores` holds the queries that were wanted and have a document; `unwanted` are the qids of the
    others. `first_stage` is None where it is not known (a TREC run, an output cut by --top-k).
    `rows` counts all rows by status, none for a TREC run; `repeated` rows have a qid that an
    earlier one has: the earlier one counts.
    """

    name: str
    scores: Scores = field(default_factory=dict)
    first_stage: Scores | None = None
    texts: dict[str, str] = field(default_factory=dict)
    unwanted: list[str] = field(default_factory=list)
    rows: Counter[QueryStatus] = field(default_factory=Counter)
    repeated: int = 0
    is_cut: bool = False
    run: int | None = None
    spending: Spending | None = None

    def ranking(self, qid: str) -> Ranking:
        """The documents of a query, best first: by score, then the larger docid, as trec_eval."""
        scores = self.scores[qid]
        return tuple(sorted(scores, key=lambda docid: (scores[docid], docid), reverse=True))


def is_store(path: Path) -> bool:
    """Whether `path` is an SQLite file."""
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


async def read_source(
    source: Path, number: int | None, wanted: Container[str] | None
) -> MeasuredRun:
    """Read a run from a file, or from a store: `STORE`, `STORE#ID` or with its number.

    Raises UsageError and StoreError.
    """
    named = re.fullmatch(r"(.+)#([0-9]{1,12})", str(source))
    if named and not await asyncio.to_thread(source.exists):
        if number is not None:
            raise UsageError(f"{source} names a run already: leave --run out")
        source, number = Path(named[1]), int(named[2])
    if await asyncio.to_thread(is_store, source):
        return await read_store(source, number, wanted)
    if number is not None:
        raise UsageError(f"{quoted(source)} is no store, so it has no run {number}")
    return await asyncio.to_thread(read_run, source, wanted)


def read_run(path: Path, wanted: Container[str] | None = None) -> MeasuredRun:
    """Read a TREC run, batchrank's JSONL output or its input (the first stage), packed or not.

    Only rankings of `wanted` qids are kept, all without it. Raises UsageError that names the line.
    """
    lines = numbered_lines(path)
    first = next(lines, None)
    if first is None:
        raise UsageError(f"{quoted(path)} is empty: expected a run")
    read = MeasuredRun(str(path))
    if first.text.startswith("{"):
        gathered = _Gathered(read, wanted)
        for line in (first, *lines):
            _read_row(gathered, line)
        gathered.finish()
        return read
    seen: set[str] = set()
    for line in (first, *lines):
        qid, docid, score = read_trec_line(line)
        if not isfinite(score):
            raise UsageError(f"{line.where}: the score {shown(str(score))} is no number")
        if wanted is not None and qid not in wanted:
            seen.add(qid)
            continue
        scores = read.scores.setdefault(qid, {})
        if docid in scores:
            raise UsageError(f"{line.where}: document {shown(docid)} of query {shown(qid)} again")
        scores[docid] = score
    read.unwanted = sorted(seen)
    return read


async def read_store(
    path: Path, number: int | None, wanted: Container[str] | None = None
) -> MeasuredRun:
    """Read a run of a store, the latest without a number. Raises StoreError."""
    async with await Store.open(path) as store:
        run = await store.run(number)
        read = MeasuredRun(f"{path}#{run.id}", run=run.id)
        gathered = _Gathered(read, wanted)
        answers: set[int] = set()
        async for chunk in store.rows(run.id):
            for _, ranked in chunk:
                answers.update(ranked.answers)
                _add_ranked(gathered, ranked)
        gathered.finish()
        read.spending = await spending_of(store, await night_of(store, run), answers)
        return read


class _Gathered:
    """Collects rows into a MeasuredRun."""

    def __init__(self, read: MeasuredRun, wanted: Container[str] | None) -> None:
        self._read = read
        self._wanted = wanted
        self._seen: set[str] = set()
        self._first_stage: Scores = {}

    def add(
        self,
        qid: str | None,
        text: str | None,
        status: QueryStatus,
        ranking: Sequence[str],
        first_stage: Sequence[str] | None,
    ) -> None:
        """Count a row, and keep its rankings where they are the first of a wanted query."""
        read = self._read
        read.rows[status] += 1
        if not qid:
            return
        if qid in self._seen:
            read.repeated += 1
            return
        self._seen.add(qid)
        if self._wanted is not None and qid not in self._wanted:
            read.unwanted.append(qid)
            return
        read.texts[qid] = text or ""
        if ranking:
            read.scores[qid] = falling(ranking)
        if first_stage is None:
            read.is_cut = True
        elif first_stage:
            self._first_stage[qid] = falling(first_stage)

    def finish(self) -> None:
        """Settle whether the first stage is known: of all queries or of none."""
        if not self._read.is_cut:
            self._read.first_stage = self._first_stage


def falling(ranking: Sequence[str]) -> dict[str, float]:
    """Scores that put documents in this order."""
    return {docid: float(len(ranking) - place) for place, docid in enumerate(ranking)}


def _add_ranked(gathered: _Gathered, ranked: RankedQuery) -> None:
    gathered.add(ranked.qid, ranked.query, ranked.status, ranked.ranking, ranked.docids)


def _read_row(gathered: _Gathered, line: Line) -> None:
    try:
        row = orjson.loads(line.text)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{line.where}: no JSON object: {error}") from None
    if isinstance(row, dict) and "ranking" in row:
        try:
            _add_row(gathered, row)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(
                f"{line.where}: not a row of batchrank's output: {type(error).__name__} {error}"
            ) from None
        return
    try:
        request = parse_request(line.text.encode()).request
    except LineError as error:
        if line.number == 1:
            raise UsageError(
                f"{line.where}: neither a row of batchrank's output nor of its input: {error}"
            ) from None
        gathered.add(error.qid, None, QueryStatus.FAILED, (), ())
        return
    query, docids = request.query, request.docids
    gathered.add(query.qid, query.text, QueryStatus.UNRANKED, docids, docids)


def _add_row(gathered: _Gathered, row: dict[str, Any]) -> None:
    documents = row["ranking"]
    ranking = [document["docid"] for document in documents]
    if len(set(ranking)) < len(ranking):
        raise ValueError("a document stands twice in its ranking")
    places = {document["first_stage_rank"]: document["docid"] for document in documents}
    # The last of n candidates has score 1. What was cut may have stood high in the first stage.
    is_whole = not documents or documents[-1]["score"] == 1
    gathered.add(
        row["qid"],
        row["query"],
        QueryStatus(row["status"]),
        ranking,
        [places[rank] for rank in sorted(places)] if is_whole else None,
    )
