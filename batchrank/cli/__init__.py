"""The command line: flags are parsed, the program called, and what it finds is printed."""

from __future__ import annotations

from batchrank.cli.early import watch_signals


def main() -> None:
    """Run the command line; what it needs is loaded only here, so that Ctrl-C is quiet before."""
    watch_signals()
    from batchrank.cli.app import run_app  # noqa: PLC0415 - takes long enough to be interrupted

    run_app()
