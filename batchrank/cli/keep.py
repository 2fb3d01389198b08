"""`batchrank backup` and `gc`: copy a store, and remove from it what is old."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from batchrank.cli import options
from batchrank.cli.loop import run_loop
from batchrank.cli.paths import check_output, stored_files
from batchrank.cli.streams import print_json
from batchrank.errors import UsageError
from batchrank.formats.wording import printable
from batchrank.running.retention import collect
from batchrank.spec.deadline import parse_duration
from batchrank.store.backup import back_up
from batchrank.store.connection import is_there
from batchrank.store.lock import store_lock

_STORE = Path("batchrank.sqlite")


def backup(
    target: Annotated[Path, typer.Argument(metavar="FILE", help="The copy; must not exist yet.")],
    store: options.StoreFile = _STORE,
) -> None:
    """Copy the store to FILE, also while a run is on; use the copy with --store FILE.

    Example: batchrank backup monday.sqlite
    """
    check_output(str(target), stored_files(store))
    size = back_up(store, target)
    typer.echo(f"{printable(str(target))}: {size:,} bytes")


def gc(
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="DURATION", help="Age of a run, such as 30d.")
    ],
    store: options.StoreFile = _STORE,
    dry: Annotated[
        bool, typer.Option("--dry-run", help="Say what would go and remove nothing.")
    ] = False,
    as_json: options.JsonFlag = False,
) -> None:
    """Remove what only older runs use, and give the space back; the latest run always stays.

    Example: batchrank gc --older-than 30d --dry-run
    """
    cutoff = time.time() - parse_duration(older_than)
    if not is_there(store):
        raise UsageError(f"there is no store at {store}; name it with --store")
    with store_lock(store):
        found = run_loop(collect(store, cutoff, dry_run=dry))
    if as_json:
        print_json(asdict(found))
        return
    typer.echo(
        f"{'would remove' if dry else 'removed'} {found.runs:,} runs, {found.lines:,} lines, "
        f"{found.rankings:,} rankings and {found.answers:,} answers ({found.content:,} bytes)"
    )
    typer.echo(
        f"{printable(str(store))}: {found.before:,} bytes"
        + ("" if dry else f", now {found.after:,}")
    )
