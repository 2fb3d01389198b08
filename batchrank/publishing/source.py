"""The entries that a run has to publish, read from its store in the order of its input."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

import orjson

from batchrank.entries import FORMAT, Origin, Scheme, encode_origin, encode_value, entry_key
from batchrank.errors import RejectedError
from batchrank.formats.wording import displayable
from batchrank.publishing.target import Header
from batchrank.spec.publishspec import PublishSpec
from batchrank.store.packing import unpack_briefs
from batchrank.store.published import (
    SAME_NIGHT_SECONDS,
    count_rankings,
    first_alike,
    job_key_of,
    packed_rankings,
    read_by_mapping,
)
from batchrank.store.records import Run
from batchrank.store.store import Store
from batchrank.values import QueryStatus

_SAMPLE = 512
_SAMPLED_AT = 16
"""Places of a run where neighbours are sampled together."""


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Seconds until an entry ends, None for never, and the share by which that is shortened."""

    ttl: float | None
    jitter: float = 0.0


@dataclass(frozen=True, slots=True)
class Block:
    """Keys and values of the lines up to `position`."""

    position: int
    entries: list[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class Source:
    """The rankings of one run with one of `statuses`, as cache entries; `lines` counts them."""

    store: Store
    run: Run
    statuses: tuple[QueryStatus, ...]
    scheme: Scheme
    origin: Origin
    lines: int

    @classmethod
    async def of(
        cls,
        store: Store,
        run: Run,
        spec: PublishSpec,
    ) -> Source:
        """What `run` has, as that of its night's first run where it only repeats that.

        Raises RejectedError where no gate passed it and `spec` wants one.
        """
        if not spec.ungated:
            _see_that_gates_passed(run, store.path)
        # The same night begun again has another number; what was published of it, or begun to be,
        # is that of its first run.
        first = await first_alike(store, run, run.started - SAME_NIGHT_SECONDS)
        run = await store.run(first)
        await read_by_mapping(store)
        return cls(
            store,
            run,
            spec.statuses,
            spec.scheme,
            Origin(
                run.settings["model"],
                run.settings["template"],
                run.started,
                await job_key_of(store, run),
            ),
            await count_rankings(store, run, spec.statuses),
        )

    def header(self, lifetime: Lifetime, *, replace: bool) -> Header:
        """What its generation is made from."""
        made_from = [
            FORMAT,
            str(self.scheme),
            self.origin.job,
            self.run.id,
            self.run.started,
            sorted(self.statuses),
            lifetime.ttl,
            lifetime.jitter,
            replace,
            self.lines,
        ]
        identity = hashlib.sha256(orjson.dumps(made_from)).hexdigest()[:32]
        place = displayable(str(self.store.path))
        return Header(identity, self.scheme, f"run {self.run.id} of {place}")

    async def blocks(self, after: int, size: int) -> AsyncGenerator[Block]:
        """Entries of the lines behind position `after`, `size` at a time.

        The next are read while those before are made.
        """
        reading = asyncio.create_task(self._read(after, size))
        try:
            while rows := await reading:
                after = rows[-1][0]
                reading = asyncio.create_task(self._read(after, size))
                await asyncio.sleep(0)  # lets it begin
                yield Block(after, await asyncio.to_thread(self._entries, rows))
        finally:
            reading.cancel()
            await asyncio.wait([reading])

    async def sample(self) -> list[tuple[str, bytes]]:
        """Some entries, from all over the run."""
        ((last,),) = await self.store.select(
            "SELECT ifnull(max(position), 0) FROM lines WHERE run = ?", (self.run.id,)
        )
        step = max(1, (last + 1) // _SAMPLED_AT)
        found: dict[int, bytes] = {}
        for after in range(-1, last + 1, step):
            found.update(await self._read(after, _SAMPLE // _SAMPLED_AT))
        return await asyncio.to_thread(self._entries, list(found.items()))

    async def _read(self, after: int, limit: int) -> list[tuple[int, bytes]]:
        return await packed_rankings(self.store, self.run.id, self.statuses, after, limit)

    def _entries(self, rows: Sequence[tuple[int, bytes]]) -> list[tuple[str, bytes]]:
        entries = []
        shared = encode_origin(self.origin)
        for length, docids, query in unpack_briefs(packed for _, packed in rows):
            candidates = orjson.loads(docids) if self.scheme.candidates else None
            key = entry_key(query, candidates, self.scheme)
            entries.append((key, encode_value(docids, length, shared)))
        return entries


def _see_that_gates_passed(run: Run, store: Path) -> None:
    """Refuse a run that was rejected, or ended without a judgement."""
    if run.exit == 0 or (run.summary or {}).get("publishable"):
        return
    if run.exit is None:
        how = "did not end: run the same job again"
    elif run.exit == RejectedError.exit_code:
        how = f"was rejected by a gate: see `batchrank status --store {quote(str(store))}`"
    else:
        how = f"ended early (exit {run.exit}): run the same job again"
    raise RejectedError(f"run {run.id} {how}, or publish it all the same with --ungated")
