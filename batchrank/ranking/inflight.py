"""Requests on their way, and the windows that wait for each of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from batchrank.store.records import StoredAnswer


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A window that is to be sent; `sent` is called whenever it is."""

    sent: Callable[[], None]


@dataclass(slots=True, eq=False)
class Flight:
    """One request and those who wait for its answer, whoever of them asked first."""

    task: asyncio.Task[StoredAnswer] = field(init=False)
    waiting: list[Place] = field(default_factory=list)
    _is_sent: bool = False

    def join(self, place: Place) -> None:
        """Wait for the answer too: sent now, where the request was sent already."""
        self.waiting.append(place)
        if self._is_sent:
            place.sent()

    def sent(self) -> None:
        """A server has it, at the first try or at another."""
        self._is_sent = True
        for place in self.waiting:
            place.sent()
