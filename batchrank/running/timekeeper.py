"""Keeps the time of a run: its end, its pace, and that neither goes on in quiet hours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Self

from batchrank.clock import Clock
from batchrank.errors import BatchrankError, DeadlineError
from batchrank.progress.counts import Progress
from batchrank.running.deadline import Night
from batchrank.running.night import End, end_of
from batchrank.running.pace import Pace, WorkClock
from batchrank.serving.quiethours import Curfew
from batchrank.spec.jobspec import JobSpec


class Timekeeper:
    """A context around a run, which begins as it is made.

    `stop` is called with the reason once its time is up.
    """

    def __init__(
        self,
        spec: JobSpec,
        clock: Clock,
        *,
        say: Callable[[str], None],
        stop: Callable[[BatchrankError], None],
    ) -> None:
        self.curfew = Curfew(spec.hours_of_quiet, clock, say)
        self._work = WorkClock()
        self.pace = Pace(None, self._work)
        self.end = End()
        self._spec = spec
        self._clock = clock
        self._begun = clock.wall()
        self._stop = stop
        self._bell: asyncio.TimerHandle | None = None
        self._limits: set[asyncio.Timeout] = set()
        self._minding: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        if self.curfew.hours is not None:
            self._minding = asyncio.create_task(self._mind_quiet_hours())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._bell is not None:
            self._bell.cancel()
        if self._minding is not None:
            self._minding.cancel()
            with suppress(asyncio.CancelledError):
                await self._minding

    def set_end(self, last: Night | None) -> End:
        """Begin to keep time towards the end of the run, after the night `last` of its job."""
        now = self._clock.wall()
        self.end = end = end_of(self._spec, self._begun, now, last)
        self.pace = Pace(end.seconds, self._work)
        if self._bell is not None:
            self._bell.cancel()
        if end.at is not None and end.at > now:
            loop = asyncio.get_running_loop()
            self._bell = loop.call_later(end.at - now, self._stop, DeadlineError(end.late))
        return end

    @asynccontextmanager
    async def at_most(self, seconds: float | None) -> AsyncIterator[Callable[[], None]]:
        """Raise TimeoutError where what is inside takes longer, quiet hours left out.

        Its time begins when it first calls what it is given.
        """
        async with asyncio.timeout(None) as limit:

            def begin() -> None:
                if seconds is not None and limit in self._limits and limit.when() is None:
                    now = asyncio.get_running_loop().time()
                    limit.reschedule(now + seconds + self.curfew.left)

            self._limits.add(limit)
            try:
                yield begin
            finally:
                self._limits.discard(limit)

    async def _mind_quiet_hours(self) -> None:
        """Let no time pass in them, for ever."""
        while True:
            await self.curfew.begun()
            left = self.curfew.left
            self._work.pause()
            for limit in self._limits:
                if (when := limit.when()) is not None:
                    limit.reschedule(when + left)
            await self.curfew.ended()
            self._work.resume()

    def tell(self, progress: Progress) -> None:
        """Let the progress know what of its time was quiet, and will be."""
        progress.quiet_seconds = self._work.paused
        progress.quiet_until = self.curfew.waits_until
        if progress.quiet_until is not None:
            progress.waits = self.curfew.told
        left, hours = progress.work_left, self.curfew.hours
        if left is not None and hours is not None:
            now = self._clock.wall()
            progress.quiet_ahead = hours.after(now, left) - now - left
