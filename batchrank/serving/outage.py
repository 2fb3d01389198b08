"""The time in which none of a job's servers answers: since when, why, and how long it may last."""

from __future__ import annotations

from batchrank.clock import Clock
from batchrank.errors import LostServerError, ServerError


class Outage:
    """Lasts from the moment that every server is left alone until one answers a probe.

    `longest` is how many seconds that may take.
    """

    def __init__(self, longest: float, clock: Clock) -> None:
        self._longest = longest
        self._clock = clock
        self._since: float | None = None
        self._complaint = ""

    def heard(self, complaint: ServerError, *, none_is_open: bool) -> None:
        """A server failed with `complaint`; the outage begins where `none_is_open` any more."""
        self._complaint = str(complaint)
        if self._since is None and none_is_open:
            self._since = self._clock.now()

    def restart(self) -> None:
        """Give servers that are down their full time again."""
        if self._since is not None:
            self._since = self._clock.now()

    def end(self) -> None:
        """A server is back."""
        self._since = None

    @property
    def left(self) -> float:
        """Seconds until it has lasted too long; without end where there is none."""
        if self._since is None:
            return float("inf")
        return self._since + self._longest - self._clock.now()

    @property
    def told(self) -> str | None:
        """What is waited for, in words; None where there is no outage."""
        return None if self._since is None else f"waiting for a server ({self._complaint})"

    @property
    def surrender(self) -> LostServerError:
        """Why nothing more is sent once it has lasted too long."""
        return LostServerError(
            f"no model server answered for {self._longest:g} s, the last said: {self._complaint}"
        )
