"""How the process ends: at once, while a library is in use whose own end may hang or change it."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

_at_once = False


def leave_without_waiting(*, wanted: bool = True) -> None:
    """From now on, `leave` waits for nothing that libraries do at the end; until it is not wanted.

    What is the program's own has to be closed by then.
    """
    global _at_once  # noqa: PLW0603 - the end is the process's
    _at_once = wanted


def leave(code: int) -> NoReturn:
    """End the process with that exit code."""
    if _at_once:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(code)
    sys.exit(code)
