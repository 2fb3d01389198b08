"""Shows a snapshot of a run every second, and at its end the one that tells how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from batchrank.errors import BatchrankError, StoppedError, StoreError
from batchrank.progress.snapshot import Snapshot
from batchrank.progress.status import write_status
from batchrank.running.recorder import Recorder
from batchrank.store.connection import file_number, size_of

_TICK_SECONDS = 1.0


class Ticking:
    """A context around a run that holds the lock of `store`.

    `tick` gets each snapshot, and the status file holds the latest; `stop` is called where the
    store is no longer the file that it was. `ended` is to be called where the run ends by no
    exception; one tells for itself how the run ended.
    """

    def __init__(
        self,
        recorder: Recorder,
        store: Path,
        *,
        tick: Callable[[Snapshot], None],
        stop: Callable[[BatchrankError], None],
    ) -> None:
        self._recorder = recorder
        self._store = store
        self._tick = tick
        self._stop = stop
        self._over = asyncio.Event()
        self._ending: tuple[int, tuple[str, ...]] = (BatchrankError.exit_code, ())

    def ended(self, exit_code: int, reasons: Sequence[str]) -> None:
        """Say how the run ended."""
        self._ending = (exit_code, tuple(reasons))

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._keep_ticking())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, BatchrankError):
            self.ended(error.exit_code, [str(error)])
        elif isinstance(error, asyncio.CancelledError):
            self.ended(StoppedError.exit_code, ["interrupted"])
        elif error is not None:
            self.ended(BatchrankError.exit_code, [f"{type(error).__name__}: {error}"])
        self._over.set()
        await asyncio.wait([self._task])
        await self._show(*self._ending)

    async def _keep_ticking(self) -> None:
        opened = await asyncio.to_thread(file_number, self._store)
        while not self._over.is_set():
            await self._show()
            if await asyncio.to_thread(file_number, self._store) != opened:
                self._stop(
                    StoreError(
                        f"store {self._store} was deleted or replaced while it was in use: what "
                        "this run committed is lost; run the same command again"
                    )
                )
            with suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), _TICK_SECONDS)

    async def _show(self, exit_code: int | None = None, reasons: tuple[str, ...] = ()) -> None:
        size = await asyncio.to_thread(size_of, self._store)
        snapshot = self._recorder.snapshot(size, exit_code=exit_code, reasons=reasons)
        self._tick(snapshot)
        await asyncio.to_thread(write_status, self._store, snapshot)
