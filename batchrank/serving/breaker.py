"""When a server is left alone: a circuit breaker (Nygard, Release It!, 2007), pure."""

from __future__ import annotations

_STREAK = 4
"""Failures without a success in between; four in a row happen by chance at 2% once in millions."""
_SHARE = 0.25
"""Of calls that are turned away as too many, beyond which a server needs a rest: where it is 5% at
random this is met once in 25,000 calls, where it is half within 11."""
_SMOOTHING = 1 / 16


class Breaker:
    """Closed: calls pass. Open: none does, until a probe has succeeded and `close` is called."""

    def __init__(self, *, is_open: bool = False) -> None:
        self.is_open = is_open
        self.relapses = 0
        """Probes that succeeded since a call was last answered."""
        self._streak = 0
        self._turned_away = 0.0

    def succeeded(self) -> None:
        """A call was answered."""
        self.relapses = 0
        self._streak = 0
        self._turned_away *= 1 - _SMOOTHING

    def failed(self, *, overloaded: bool) -> bool:
        """A call was not answered; whether that opened the breaker.

        A server that says it has too much to do works: what counts is the share of such calls.
        """
        if overloaded:
            self._turned_away += _SMOOTHING * (1 - self._turned_away)
        else:
            self._streak += 1
        too_many = self._streak >= _STREAK or self._turned_away >= _SHARE
        return too_many and self.trip()

    def trip(self) -> bool:
        """The server said that it can't answer yet; whether that opened the breaker."""
        if self.is_open:
            return False
        self.is_open = True
        return True

    def close(self) -> None:
        """A probe succeeded: begin anew."""
        self.is_open = False
        self.relapses += 1
        self._streak = 0
        self._turned_away = 0.0
