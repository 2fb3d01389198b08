"""`batchrank backup`: copies a store, also while a run is on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from batchrank.cli import options
from batchrank.cli.talk import printable
from batchrank.store.backup import back_up


def backup(
    target: Annotated[Path, typer.Argument(metavar="FILE", help="The copy; must not exist yet.")],
    store: options.StoreFile = Path("batchrank.sqlite"),
) -> None:
    """Copy the store to FILE, also while a run is on; use the copy with --store FILE."""
    size = back_up(store, target)
    typer.echo(f"{printable(str(target))}: {size:,} bytes")
