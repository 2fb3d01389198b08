"""`batchrank watch`: the live view of a run in the terminal."""

from __future__ import annotations

from pathlib import Path
from time import sleep
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from batchrank.cli.commands.status import status
from batchrank.cli.display.board import board
from batchrank.cli.talk import told
from batchrank.errors import BatchrankError, UsageError
from batchrank.formats.wording import duration, one_line, quoted
from batchrank.progress.snapshot import Snapshot
from batchrank.progress.status import read_status
from batchrank.store.connection import is_there
from batchrank.store.lock import is_locked

_SECONDS_A_LOOK = 1.0
_SECONDS_A_LINE = 5.0


def watch(
    store: Annotated[
        Path, typer.Argument(metavar="[STORE]", help="SQLite store of the job.")
    ] = Path("batchrank.sqlite"),
) -> None:
    """Watch a running job until it ends: a board in a terminal, else a line every 5 s.

    Example: batchrank watch

    Ctrl-C leaves the job alone. Where no run is on it says how the last one ended. The exit code is
    that of the run: 1 where it was killed, 0 after Ctrl-C.
    """
    if not is_there(store):
        raise UsageError(
            f"there is no store at {quoted(store)}: name one with `batchrank watch FILE`"
        )
    console = Console(highlight=False)
    if not is_locked(store):
        console.print("no run is on; the last one:")
        status(store)
        last = read_status(store)
        raise typer.Exit(0 if last is None else _code(last))
    try:
        last = _on_a_board(store, console) if console.is_terminal else _in_lines(store, console)
    except KeyboardInterrupt:
        return
    console.print(_ending(last), markup=False, soft_wrap=True)
    raise typer.Exit(_code(last))


def _on_a_board(store: Path, console: Console) -> Snapshot | None:
    with Live(Text("starting"), console=console, auto_refresh=False) as live:
        while is_locked(store):
            if (now := _latest(store)) is not None:
                live.update(board(now), refresh=True)
            sleep(_SECONDS_A_LOOK)
    return read_status(store)


def _in_lines(store: Path, console: Console) -> Snapshot | None:
    while is_locked(store):
        now = _latest(store)
        line = "starting" if now is None else told(now)
        console.print(one_line(line), markup=False, soft_wrap=True)
        sleep(_SECONDS_A_LINE)
    return read_status(store)


def _latest(store: Path) -> Snapshot | None:
    """The snapshot of the run that is on; one that tells an end is of the run before."""
    now = read_status(store)
    return None if now is None or now.exit_code is not None else now


def _code(last: Snapshot | None) -> int:
    """The exit code of a run that told this last; it was killed where it told no end."""
    if last is None or last.exit_code is None:
        return BatchrankError.exit_code
    return last.exit_code


def _ending(last: Snapshot | None) -> str:
    if last is None or last.exit_code is None:
        at = "" if last is None else f" while {last.state}"
        return f"the run ended without a word{at} (killed); the same command goes on"
    reasons = "".join(f"; {one_line(reason)}" for reason in last.reasons)
    return f"ended with exit code {last.exit_code} after {duration(last.seconds)}{reasons}"
