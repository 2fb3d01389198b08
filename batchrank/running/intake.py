"""Turns the lines of an input into a run's lines: known, new, repeated or failed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from batchrank.errors import LineError
from batchrank.formats.lines import RawLine
from batchrank.formats.querywarnings import QueryWarnings
from batchrank.formats.requests import ParsedLine, parse_request, repeated_qid, salvage
from batchrank.formats.sources.source import Source, is_plain, read_queries
from batchrank.keys import generation, line_digest, ranking_key, short_digest, short_hash
from batchrank.ranking.job import Job
from batchrank.ranking.lineages import find_lineages
from batchrank.ranking.reranker import failed
from batchrank.running.retryfallbacks import forget_fallbacks
from batchrank.running.spool import Spool
from batchrank.selection.unknownkeys import UnknownKeys
from batchrank.store.history import finish_reading, left_out
from batchrank.store.records import Known, Line, Run
from batchrank.store.repeated import Repeated
from batchrank.store.store import Store
from batchrank.store.waiting import Turn, Waiting, WaitingLines
from batchrank.threads import ReadAhead
from batchrank.values import Lineage, RankedQuery, Request


@dataclass(frozen=True, slots=True)
class NewQuery:
    """A query whose ranking is not in the store, and the keys to keep it under.

    `reduced_key` is for a ranking without the optional passes. `canary` queries are judged and come
    before all others. `lineage` is there in an incremental job. `odd` says what is about the line.
    """

    key: bytes
    reduced_key: bytes | None
    request: Request
    canary: bool = False
    lineage: Lineage | None = None
    odd: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Fresh:
    """A line that is to be ranked, as it was registered and as it was read."""

    line: Line
    data: bytes
    digest: bytes
    parsed: ParsedLine


@dataclass(frozen=True, slots=True)
class Order:
    """In which order an input is ranked, and what of it is ranked again.

    `by_urgency`: all of the input is read first; then the canaries (hashes of qids) come, what the
    last run left out, and heavy queries before light ones. Otherwise queries come as they are read.
    `reduced` is the job that a ranking without optional passes belongs to; `again` has windows that
    fell back asked anew.
    """

    by_urgency: bool = False
    canaries: frozenset[int] = frozenset()
    reduced: Job | None = None
    again: bool = False


class Intake:
    """Reads a source block by block and registers every line of it with the run.

    Failed lines get their failed ranking here. What is yielded is left to be ranked.
    """

    def __init__(
        self, source: Source, limit: int | None, store: Store, run: Run, job: Job, order: Order
    ) -> None:
        self.lines = 0
        self.known = 0
        self.bytes_read = 0
        self.is_read = False
        self.query_warnings = QueryWarnings()
        self.notes: list[str] = []
        """What is odd about the source as a whole."""
        self.left = 0
        """Queries that were read and are to be ranked, less those that the caller has begun."""
        self.repeats: Run | None = None
        """The run right before, where all lines are as they were in it."""
        self._source = source
        self._limit = limit
        self._store = store
        self._run = run
        self._order = order
        self._job = job
        self._key = generation(job.key, run.fresh_since)
        reduced = order.reduced
        self._reduced = generation(reduced.key, run.fresh_since) if reduced else None
        self._selection = job.spec.selection
        self.unknown_keys = UnknownKeys(job.spec.filter.keys if job.spec.filter else ())
        self._size: int | None = None
        self._reading: ReadAhead[list[tuple[RawLine, bytes]]] | None = None

    def close(self) -> None:
        """Read no more; to be called where `blocks` are not taken to the last."""
        if self._reading is not None:
            self._reading.close()

    @property
    def source(self) -> Source:
        """What is read."""
        return self._source

    @property
    def reduced_job(self) -> Job | None:
        """The job that rankings without optional passes belong to, None where none are made."""
        return self._order.reduced

    @property
    def share_read(self) -> float | None:
        """The part of the source that was read, None where its size is not known."""
        if self.is_read:
            return 1.0
        return min(1.0, self.bytes_read / self._size) if self._size else None

    async def blocks(self) -> AsyncIterator[list[NewQuery]]:
        """The new queries, block by block; raises UsageError as `read_queries`, DiskError."""
        if not self._order.by_urgency:
            async for block in self._registered():
                new = [self._new(fresh.digest, fresh.parsed) for fresh in block]
                yield await self._with_lineage(new)
            return
        waiting = WaitingLines(self._store)
        await waiting.open()
        with await asyncio.to_thread(Spool, self._store.path.parent) as spool:
            async for block in self._registered():
                await self._keep(block, spool, waiting)
            async for lines in waiting.by_urgency():
                new = await asyncio.to_thread(self._fetched, lines, spool)
                yield await self._with_lineage(new)

    async def _registered(self) -> AsyncIterator[list[_Fresh]]:
        """The lines of each block that are to be ranked, in input order."""
        blocks = read_queries(self._source, self._limit, self.notes.append)
        if self._limit is None:
            self._size = await asyncio.to_thread(_size, self._source)
        earlier = None if self._order.again else await Repeated.find(self._store, self._run)
        repeats = True
        self._reading = ReadAhead(lambda: _digested(blocks))
        while (block := await self._reading.next()) is not None:
            if earlier is not None:
                found = [(raw.number, ranking_key(self._key, digest)) for raw, digest in block]
                if await earlier.follow(found):
                    self._advance(block)
                    continue
                await earlier.flush()
            fresh, lines = await self._take(block)
            repeats = False
            if earlier is not None and not earlier.rejoins(lines):
                earlier = None
            yield fresh
        if earlier is not None:
            await earlier.flush()
            if repeats and await earlier.is_whole(self.lines):
                self.repeats = earlier.earlier
        self.is_read = True
        if self._limit is None:
            await finish_reading(self._store, self._run.id, self.lines)

    async def _keep(self, block: list[_Fresh], spool: Spool, waiting: WaitingLines) -> None:
        late = await left_out(self._store, self._run, {fresh.line.qid for fresh in block})

        def kept(fresh: _Fresh) -> Waiting:
            line = fresh.line
            turn = Turn.LEFT_OUT if line.qid in late else Turn.NEW
            if line.qid in self._order.canaries:
                turn = Turn.CANARY
            return Waiting(turn, -line.weight, line.position, *spool.add(fresh.data))

        await waiting.add(await asyncio.to_thread(lambda: [kept(fresh) for fresh in block]))

    def _fetched(self, lines: list[Waiting], spool: Spool) -> list[NewQuery]:
        found = []
        for line in lines:
            data = spool.get(line.offset, line.length)
            parsed = self._looked_at(parse_request(data))
            found.append(self._new(line_digest(data), parsed, line.turn == Turn.CANARY))
        return found

    def _new(self, digest: bytes, parsed: ParsedLine, canary: bool = False) -> NewQuery:
        reduced = ranking_key(self._reduced, digest) if self._reduced else None
        key = ranking_key(self._key, digest)
        return NewQuery(key, reduced, parsed.request, canary, odd=parsed.warnings)

    async def _with_lineage(self, block: list[NewQuery]) -> list[NewQuery]:
        """The same, with what each can build on where the job is incremental."""
        requests = [new.request for new in block]
        lineages = await find_lineages(self._store, self._run, self._job, requests)
        return [replace(new, lineage=lineage) for new, lineage in zip(block, lineages, strict=True)]

    async def _look_up(
        self, block: list[tuple[RawLine, bytes]]
    ) -> tuple[list[bytes], dict[bytes, Known]]:
        """The key of each line's ranking, and the rankings that are there."""
        keys = [ranking_key(self._key, digest) for _, digest in block]
        known = await self._store.known(keys)
        if self._reduced is not None:
            reduced = [ranking_key(self._reduced, digest) for _, digest in block]
            found = await self._store.known(reduced)
            keys = [
                other if key not in known and other in found else key
                for key, other in zip(keys, reduced, strict=True)
            ]
            known |= found
        if self._order.again:
            fell = [key for key, ranking in known.items() if ranking.fell_back]
            await forget_fallbacks(self._store, self._run, fell)
            known |= {key: replace(known[key], retry=True) for key in fell}
        return keys, known

    def _advance(self, block: list[tuple[RawLine, bytes]]) -> None:
        """Count lines that are known as a whole."""
        self.lines += len(block)
        self.known += len(block)
        self.bytes_read += sum(len(raw.data) + 1 for raw, _ in block)

    async def _take(self, block: list[tuple[RawLine, bytes]]) -> tuple[list[_Fresh], list[Line]]:
        """Register the lines of a block; those that are to be ranked, and all."""
        keys, known = await self._look_up(block)
        items = []
        for (raw, _), key in zip(block, keys, strict=True):
            items.append(self._parse(raw, known.get(key)))
            await asyncio.sleep(0)  # answers that came are not kept waiting by a whole block
        qids = [_claimed_qid(item) for item in items]
        holders = await self._store.seen_qids(self._run.id, {qid for qid in qids if qid})
        lines: list[Line] = []
        failures: dict[bytes, RankedQuery] = {}
        fresh: dict[bytes, _Fresh] = {}
        for (raw, digest), key, item, qid in zip(block, keys, items, qids, strict=True):
            weight = _weight(raw, item)
            line = Line(self.lines, raw.number, qid, key, weight, short_digest(digest))
            self.lines += 1
            self.bytes_read += len(raw.data) + 1
            holder = holders.setdefault(qid, line) if qid else line
            if holder.ranking != key:
                line = replace(line, qid=0, ranking=ranking_key(self._key, digest, holder.line))
                failures[line.ranking] = _repeated(raw, holder)
            elif isinstance(item, LineError):
                failures[key] = failed(salvage(raw.data), item.kind, str(item))
            elif isinstance(item, Known):
                self.known += 1
            else:
                self.left += key not in fresh
                fresh[key] = _Fresh(line, raw.data, digest, item)
            lines.append(line)
        await asyncio.gather(
            self._store.add_lines(self._run.id, lines),
            *(
                self._store.add_ranking(key, self._run.job, ranked, retry=True)
                for key, ranked in failures.items()
            ),
        )
        return list(fresh.values()), lines

    def _parse(self, raw: RawLine, known: Known | None) -> Known | ParsedLine | LineError:
        if known is not None and not known.retry:
            return known
        try:
            parsed = self._looked_at(parse_request(raw.data))
        except LineError as error:
            return error
        self.query_warnings.add(parsed.warnings, parsed.request.query.qid)
        self.unknown_keys.look(parsed.request.candidates)
        return parsed

    def _looked_at(self, parsed: ParsedLine) -> ParsedLine:
        """The same, with what is odd about it for the job's selection."""
        more = self._selection.warnings(parsed.request.candidates, self._job.spec.deepest)
        return replace(parsed, warnings=(*parsed.warnings, *more)) if more else parsed


def _claimed_qid(item: Known | ParsedLine | LineError) -> int:
    """The hash of the qid that a line holds against later ones; a failed line holds none."""
    if isinstance(item, Known):
        return item.qid
    return short_hash(item.request.query.qid) if isinstance(item, ParsedLine) else 0


def _weight(raw: RawLine, item: Known | ParsedLine | LineError) -> float:
    if isinstance(item, Known):
        # What is known is not parsed, but for this.
        return parse_request(raw.data).request.weight if b'"weight"' in raw.data else 1.0
    return item.request.weight if isinstance(item, ParsedLine) else 1.0


def _repeated(raw: RawLine, holder: Line) -> RankedQuery:
    request = parse_request(raw.data).request
    error = repeated_qid(request.query.qid, raw.number, holder.line)
    return failed(request, error.kind, str(error))


def _size(source: Source) -> int | None:
    """Bytes of a plain file, or a shard's part of them; unknown of a pipe or a packed file."""
    if not is_plain(source):
        return None
    return Path(source.path).stat().st_size // (source.shard.count if source.shard else 1)


def _digested(blocks: Iterator[list[RawLine]]) -> list[tuple[RawLine, bytes]] | None:
    block = next(blocks, None)
    return None if block is None else [(line, line_digest(line.data)) for line in block]
