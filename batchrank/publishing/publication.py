"""One publication: a run's entries become a generation, and the generation becomes current."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

from batchrank.clock import SystemClock
from batchrank.entries import expiry
from batchrank.errors import (
    BatchrankError,
    RejectedError,
    StoppedError,
    TargetError,
    UsageError,
)
from batchrank.publishing.rate import Clock, Rate
from batchrank.publishing.source import Lifetime, Source
from batchrank.publishing.target import Begun, Coverage, Entry, Generation, Header, Plan, Target
from batchrank.spec.publishspec import PublishSpec

_NO_KEYS = Coverage(0, 0)


async def ready(target: Target, spec: PublishSpec) -> Generation | None:
    """What readers of `target` see now, where it will take a publication as things stand.

    Raises UsageError for what time won't mend, also where entries there can't be carried over.
    """
    current = await target.ready()
    if current is None or spec.replace:
        return current
    if current.header.scheme is None:
        raise UsageError(
            f"{target.name}: how the keys of generation {current.number} are made was lost "
            "(evicted, or deleted), so that nothing can be carried over: publish with --replace "
            "and --min-coverage 0"
        )
    if current.header.scheme != spec.scheme:
        raise UsageError(
            f"{target.name}: the keys there are made another way ({current.header.scheme}, now "
            f"{spec.scheme}), so that nothing can be carried over: publish with the same "
            "--normalise and --key-candidates, or with --replace and --min-coverage 0"
        )
    return current


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a publication would write: at most `entries`, and `needed` bytes in the target.

    `refusal` says why that has no room, if so; `is_current` that readers see all this already.
    """

    entries: int
    needed: int
    current: Generation | None
    is_current: bool
    refusal: str | None


@dataclass(frozen=True, slots=True)
class Published:
    """How a publication ended: the generation that is current, and what came into it.

    `shared` lines have the key of an earlier line; `carried` entries come from the generation
    before. `repeated` where it was current already and nothing was written.
    """

    generation: int
    entries: int | None
    written: int = 0
    shared: int = 0
    carried: int = 0
    coverage: Coverage = _NO_KEYS
    resumed: bool = False
    repeated: bool = False


class Publication:
    """Publishes `source` to `target` as `spec` says.

    `tick` gets the share that is done and what is going on. What is interrupted leaves the current
    generation as it is; the same again goes on with it.
    """

    def __init__(
        self,
        source: Source,
        target: Target,
        spec: PublishSpec,
        *,
        clock: Clock | None = None,
        tick: Callable[[float, str], None] = lambda share, what: None,
    ) -> None:
        self._source = source
        self._target = target
        self._spec = spec
        self._lifetime = Lifetime(spec.seconds, spec.jitter)
        self._rate = Rate(spec.max_ops, clock or SystemClock())
        self._tick = tick
        self._stop: BatchrankError | None = None
        self._task: asyncio.Task[Published] | None = None

    @property
    def target(self) -> Target:
        """Where it goes."""
        return self._target

    @property
    def is_stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stop is not None

    @property
    def awaited(self) -> str | None:
        """What `stop` waits for."""
        return "the batch on its way is"

    def stop(self, reason: BatchrankError) -> None:
        """End for `reason` after the batch that is on its way."""
        self._stop = reason

    def abort(self) -> None:
        """Drop the batch that is on its way too; as if the process were killed."""
        if self._task is not None:
            self._task.cancel()

    async def outlook(self) -> Outlook:
        """What `run` would do, without writing anything.

        Raises UsageError where entries of the current generation can't be carried.
        """
        source, spec = self._source, self._spec
        current = await ready(self._target, spec)
        header = self._header()
        sample = await source.sample()
        sizes = [len(value) for _, value in sample]
        plan = Plan(
            entries=source.lines,
            value_bytes=sum(sizes) / max(1, len(sizes)),
            keys=[key for key, _ in sample],
            has_ttl=self._lifetime.ttl is not None,
            replace=spec.replace,
            keep=spec.keep,
        )
        room = await self._target.room(plan)
        return Outlook(
            entries=source.lines,
            needed=room.needed,
            current=current,
            is_current=current is not None and current.header == header,
            refusal=room.refusal,
        )

    async def run(self) -> Published:
        """Publish, or go on with what was interrupted.

        Raises TargetError where there is no room, RejectedError where coverage is too low, and as
        the target's methods.
        """
        self._task = asyncio.current_task()
        outlook = await self.outlook()
        current = outlook.current
        if current is not None and outlook.is_current:
            await self._target.prune(self._spec.keep)
            return Published(current.number, current.entries, repeated=True)
        if outlook.refusal is not None:
            raise TargetError(outlook.refusal)
        await self._target.prune(self._spec.keep)  # one too many may take the room
        begun = await self._target.begin(self._header())
        lines, written = await self._write(begun)
        coverage = await self._carry()
        least = self._spec.min_coverage
        if coverage.share < least:
            await self._target.discard()
            raise RejectedError(
                f"{coverage.covered:,} of {coverage.keys:,} keys that are current "
                f"({coverage.share:.1%}) would stay; --min-coverage asks for {least:.0%}: readers "
                "keep what they have"
            )
        self._see_whether_to_stop()
        entries = await self._target.switch()
        self._tick(1.0, "removing what is old")
        await self._target.prune(self._spec.keep)
        return Published(
            generation=begun.number,
            entries=entries,
            written=written,
            shared=lines - written,
            carried=max(0, entries - written),
            coverage=coverage,
            resumed=begun.position >= 0,
        )

    def _header(self) -> Header:
        return self._source.header(self._lifetime, replace=self._spec.replace)

    async def _write(self, begun: Begun) -> tuple[int, int]:
        """Write what is not yet there; the lines and the entries of the whole generation.

        The next batch is made while one is on its way.
        """
        lifetime = self._lifetime
        lines = self._source.lines
        written = begun.written
        done = 0
        sending: asyncio.Task[int] | None = None
        blocks = self._source.blocks(begun.position, self._rate.batch)
        async with aclosing(blocks):
            try:
                async for block in blocks:
                    entries = [
                        Entry(key, value, expiry(key, begun.began, lifetime.ttl, lifetime.jitter))
                        for key, value in block.entries
                    ]
                    if sending is not None:
                        written = await sending
                    self._see_whether_to_stop()
                    await self._rate.spend(len(entries))
                    done += len(entries)
                    sending = asyncio.create_task(self._target.write(entries, block.position))
                    self._tick(min(1.0, (begun.written + done) / max(1, lines)), "writing")
                    await asyncio.sleep(0)  # lets it leave
                if sending is not None:
                    written = await sending
            except BaseException:
                if sending is not None:
                    sending.cancel()
                    await asyncio.wait([sending])
                raise
        return lines, written

    async def _carry(self) -> Coverage:
        """Take over what the run has no ranking for, or only see how much that is."""
        found = _NO_KEYS
        after = ""
        while True:
            after, more = await self._target.carry(after, copy=not self._spec.replace)
            found += more
            await self._rate.spend(more.keys)
            self._see_whether_to_stop()
            self._tick(1.0, f"carrying over: {found.keys:,} current keys seen")
            if not after:
                return found

    def _see_whether_to_stop(self) -> None:
        if self._stop is not None:
            raise StoppedError(
                f"{self._stop}; readers keep what they have, and the same command goes on"
            ) from self._stop
