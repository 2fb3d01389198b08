"""The quiet hours of a job as they come and go: what would send anything waits here first."""

from __future__ import annotations

from collections.abc import Callable

from batchrank.clock import Clock
from batchrank.errors import StoppedError
from batchrank.spec.quiethours import QuietHours
from batchrank.spec.walltime import told

_LONGEST_SLEEP = 60.0
"""So that a clock that is set, or a machine that was suspended, is noticed."""
_SHORTEST_SLEEP = 0.05
"""The two clocks differ a little: who wakes too early must not wait in a hot loop."""


class Curfew:
    """Knows whether these are quiet hours, of which there are none where `hours` is None.

    `say` is told once each time that something has to wait, and once when it goes on.
    """

    def __init__(self, hours: QuietHours | None, clock: Clock, say: Callable[[str], None]) -> None:
        self.hours = hours
        self._clock = clock
        self._say = say
        self._waiting = 0
        self._was_told = False

    @property
    def until(self) -> float | None:
        """When the quiet hours that are now end, in seconds since the epoch; None outside."""
        return None if self.hours is None else self.hours.until(self._clock.wall())

    @property
    def left(self) -> float:
        """Seconds for which those that are now go on, 0 outside."""
        until = self.until
        return 0.0 if until is None else until - self._clock.wall()

    @property
    def waits_until(self) -> float | None:
        """As `until`, where something waits for it."""
        return self.until if self._waiting else None

    @property
    def told(self) -> str:
        """What to say of those that are now."""
        until = self.until
        end = "now" if until is None else told(until, self._clock.wall())
        return f"quiet hours until {end}"

    async def begun(self) -> None:
        """Return in quiet hours: at once, or when they begin."""
        while self.until is None:
            wait = _LONGEST_SLEEP
            if self.hours is not None:
                now = self._clock.wall()
                wait = self.hours.next_start(now) - now
            await self._sleep(wait)

    async def ended(self) -> None:
        """Return outside of quiet hours: at once, or when they end."""
        while left := self.left:
            await self._sleep(left)

    async def gate(self) -> None:
        """As `ended`, for what has something to send: that it waits can be seen."""
        if self.until is None:
            return
        if not self._was_told:
            self._was_told = True
            self._say(f"{self.told}: nothing is sent before")
        self._waiting += 1
        try:
            await self.ended()
        finally:
            self._waiting -= 1
        if self._was_told:
            self._was_told = False
            self._say("the quiet hours are over")

    async def refuse(self) -> None:
        """The gate of what has no use for waiting: StoppedError in quiet hours."""
        if self.until is not None:
            raise StoppedError(
                f"{self.told}: nothing can be asked of a model server before; try again then, or "
                "with other --quiet-hours; `batchrank check FILE` and `batchrank run FILE "
                "--dry-run` need no server"
            )

    async def _sleep(self, seconds: float) -> None:
        await self._clock.sleep(min(max(seconds, _SHORTEST_SLEEP), _LONGEST_SLEEP))
