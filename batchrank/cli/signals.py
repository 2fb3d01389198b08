"""Ends what runs cleanly on SIGINT, SIGTERM and SIGHUP, and at once on a second one."""

from __future__ import annotations

import asyncio
import signal
from functools import partial
from typing import Protocol

from batchrank.cli.early import hear
from batchrank.cli.loop import soon
from batchrank.cli.talk import Talk
from batchrank.errors import BatchrankError, StoppedError


class Stoppable(Protocol):
    """A run, or several one after another."""

    @property
    def is_stopping(self) -> bool:
        """Whether `stop` was called."""

    @property
    def awaited(self) -> str | None:
        """What is waited for where it is stopped now, None for nothing."""

    def stop(self, reason: BatchrankError) -> None:
        """Send nothing more and end for `reason`."""

    def abort(self) -> None:
        """Drop what is in flight."""


def stop_on_signals(work: Stoppable, talk: Talk) -> None:
    """Let signals stop `work`, which runs on the loop that is running."""
    loop = asyncio.get_running_loop()
    hear(lambda number: soon(loop, partial(_on_signal, work, talk, number)))
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup: it outlives its terminal
        loop.add_signal_handler(signal.SIGHUP, _on_signal, work, talk, signal.SIGHUP)


def _on_signal(work: Stoppable, talk: Talk, number: signal.Signals) -> None:
    if work.is_stopping:
        work.abort()
        return
    waits = "" if work.awaited is None else f", {work.awaited} waited for"
    talk.say(f"{number.name}: stopping{waits}; once more stops at once")
    work.stop(StoppedError(f"{number.name} received"))
