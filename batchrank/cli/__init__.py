"""The command line: flags are parsed, the program called, and what it finds is printed."""

from __future__ import annotations

import signal


def main() -> None:
    """Run the command line; what it needs is loaded only here, so that Ctrl-C is quiet before."""
    interrupted = signal.getsignal(signal.SIGINT)
    if interrupted is signal.default_int_handler:
        # Nothing has begun: the system's own way to end says nothing, and shells report it as 130.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from batchrank.cli.app import run_app  # noqa: PLC0415 - takes long enough to be interrupted

    signal.signal(signal.SIGINT, interrupted)
    run_app()
