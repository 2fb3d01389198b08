"""The latest snapshot as server-sent events (HTML Standard, section 9.2), for many readers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import orjson

from batchrank.progress.snapshot import Snapshot


class Feed:
    """Holds one snapshot, the latest: who reads slowly misses some, and holds up nobody."""

    def __init__(self) -> None:
        self._latest: Snapshot | None = None
        self._event = b""
        self._changed = asyncio.Event()

    @property
    def is_over(self) -> bool:
        """Whether the run has ended: no more will come."""
        return self._latest is not None and self._latest.exit_code is not None

    def publish(self, snapshot: Snapshot) -> None:
        """Put `snapshot` in the place of the one before."""
        self._latest = snapshot
        self._event = b""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def events(self) -> AsyncIterator[bytes]:
        """The latest snapshot now, and each time that it is another; `end` is the last event."""
        seen: Snapshot | None = None
        while True:
            changed = self._changed
            if self._latest is seen:
                await changed.wait()
                continue
            seen = self._latest
            yield self._encoded()
            if self.is_over:
                yield b"event: end\ndata:\n\n"
                return

    def _encoded(self) -> bytes:
        """The latest snapshot as an event, made once for all readers."""
        if not self._event:
            # orjson writes no line feeds, which would end the data.
            self._event = b"data: " + orjson.dumps(self._latest) + b"\n\n"
        return self._event
