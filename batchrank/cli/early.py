"""Signals while a command is still being loaded: one line and an exit code, at once."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

_STANDARD_ERROR = 2
_STOPPED = 75
"""As `StoppedError.exit_code`: nothing more than must be is loaded before signals are watched."""


class Loading:
    """A context around imports, which an exception in their midst can leave in any state.

    SIGINT and SIGTERM end the process, as nothing has begun; who ignores them goes on to.
    """

    def __enter__(self) -> None:
        self._before = {}
        defaults = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
        for number, default in defaults.items():
            if (before := signal.getsignal(number)) is default:
                self._before[number] = before
                signal.signal(number, _end)

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)


def _end(*_: object) -> None:
    with suppress(OSError):  # it may be closed
        os.write(_STANDARD_ERROR, b"batchrank: error: interrupted\n")
    os._exit(_STOPPED)
