"""Signals from the first moment on: who is to hear them changes, their handler never does.

So none comes in a gap between two handlers. KeyboardInterrupt is never raised: in the midst of an
`exec` of Python's own it lets the process die by SIGINT, even where it is caught.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress

Hears = Callable[[signal.Signals], None]

_STANDARD_ERROR = 2
_STOPPED = 75
"""As `StoppedError.exit_code`: nothing more than must be is loaded before signals are watched."""
NOTHING_LOST = "nothing is lost: give the same command again"
INTERRUPTED = f"interrupted; {NOTHING_LOST}"
"""True of every command at any time: files are replaced whole, stores take what is committed."""


def end(_: signal.Signals) -> None:
    """End the process at once with one line: nothing has begun, or all is done."""
    with suppress(OSError):  # it may be closed
        os.write(_STANDARD_ERROR, f"batchrank: error: {INTERRUPTED}\n".encode())
    os._exit(_STOPPED)


_hears: Hears = end


def hear(by: Hears = end) -> None:
    """Let `by` hear SIGINT and SIGTERM from now on, between any two steps of the main thread."""
    global _hears  # noqa: PLW0603 - signals are the process's
    _hears = by


def watch_signals() -> None:
    """Take SIGINT and SIGTERM; who ignores them goes on to."""
    defaults = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    for number, default in defaults.items():
        if signal.getsignal(number) is default:
            signal.signal(number, _told)


def _told(number: int, _: object) -> None:
    _hears(signal.Signals(number))
