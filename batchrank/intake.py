"""Turns the lines of an input into a run's lines: known, new, repeated or failed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

from batchrank.errors import LineError
from batchrank.formats.lines import RawLine, read_lines
from batchrank.formats.requests import parse_request, repeated_qid
from batchrank.keys import line_digest, ranking_key, short_hash
from batchrank.reranker import failed
from batchrank.store.store import Known, Line, Run, Store
from batchrank.values import Query, RankedQuery, Request


@dataclass(frozen=True, slots=True)
class NewQuery:
    """A query whose ranking is not in the store, and the key to keep it under."""

    key: bytes
    request: Request


class Intake:
    """Reads a source block by block and registers every line of it with the run.

    Failed lines get their failed ranking here. What is yielded is left to be ranked.
    """

    def __init__(self, source: str, limit: int | None, store: Store, run: Run, job: bytes) -> None:
        self.lines = 0
        self.known = 0
        self.bytes_read = 0
        self.warnings: Counter[str] = Counter()
        self._source = source
        self._limit = limit
        self._store = store
        self._run = run
        self._job = job
        self._size: int | None = None

    @property
    def share_read(self) -> float | None:
        """The part of the source that was read, None where its size is not known."""
        return min(1.0, self.bytes_read / self._size) if self._size else None

    async def blocks(self) -> AsyncIterator[list[NewQuery]]:
        """The new queries of each block, in input order; raises UsageError as `read_lines`."""
        blocks = read_lines(self._source, self._limit)
        if self._limit is None:
            self._size = await asyncio.to_thread(_size, self._source)

        def read() -> list[tuple[RawLine, bytes]] | None:
            block = next(blocks, None)
            return None if block is None else [(line, line_digest(line.data)) for line in block]

        while (block := await asyncio.to_thread(read)) is not None:
            yield await self._take(block)

    async def _take(self, block: list[tuple[RawLine, bytes]]) -> list[NewQuery]:
        keys = [ranking_key(self._job, digest) for _, digest in block]
        known = await self._store.known(keys)
        items = [
            self._parse(raw, known.get(key)) for (raw, _), key in zip(block, keys, strict=True)
        ]
        qids = [_claimed_qid(item) for item in items]
        holders = await self._store.seen_qids(self._run.id, {qid for qid in qids if qid})
        lines: list[Line] = []
        failures: dict[bytes, RankedQuery] = {}
        fresh: dict[bytes, NewQuery] = {}
        for (raw, digest), key, item, qid in zip(block, keys, items, qids, strict=True):
            line = Line(self.lines, raw.number, qid, key)
            self.lines += 1
            self.bytes_read += len(raw.data) + 1
            holder = holders.setdefault(qid, line) if qid else line
            if holder.ranking != key:
                line = replace(line, qid=0, ranking=ranking_key(self._job, digest, holder.line))
                failures[line.ranking] = _repeated(raw, holder)
            elif isinstance(item, LineError):
                request = Request(Query(item.qid or "", ""), ())
                failures[key] = failed(request, item.kind, str(item))
            elif isinstance(item, Known):
                self.known += 1
            else:
                fresh[key] = NewQuery(key, item)
            lines.append(line)
        await asyncio.gather(
            self._store.add_lines(self._run.id, lines),
            *(
                self._store.add_ranking(key, self._run.job, ranked, retry=True)
                for key, ranked in failures.items()
            ),
        )
        return list(fresh.values())

    def _parse(self, raw: RawLine, known: Known | None) -> Known | Request | LineError:
        if known is not None and not known.retry:
            return known
        try:
            parsed = parse_request(raw.data)
        except LineError as error:
            return error
        self.warnings.update(parsed.warnings)
        return parsed.request


def _claimed_qid(item: Known | Request | LineError) -> int:
    """The hash of the qid that a line holds against later ones; a failed line holds none."""
    if isinstance(item, Known):
        return item.qid
    return short_hash(item.query.qid) if isinstance(item, Request) else 0


def _repeated(raw: RawLine, holder: Line) -> RankedQuery:
    request = parse_request(raw.data).request
    error = repeated_qid(request.query.qid, raw.number, holder.line)
    return failed(request, error.kind, str(error))


def _size(source: str) -> int | None:
    """Bytes of a plain file; what a pipe or a packed file holds is not known beforehand."""
    path = Path(source)
    if source == "-" or path.suffix in (".gz", ".zst") or not path.is_file():
        return None
    return path.stat().st_size
