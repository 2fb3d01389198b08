"""`batchrank backup`, `merge-stores` and `gc`: copy stores, join them, remove what is old."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from batchrank.cli import options
from batchrank.cli.loop import run_loop
from batchrank.cli.paths import check_output, stored_files
from batchrank.cli.streams import print_json
from batchrank.cli.talk import Talk
from batchrank.errors import StoreError, UsageError
from batchrank.formats.wording import counted, printable
from batchrank.maintenance.joining import Joined, join
from batchrank.maintenance.retention import collect
from batchrank.spec.times import parse_duration
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
    check_output(str(target), stored_files(store), by=None)
    size = back_up(store, target)
    typer.echo(f"{printable(str(target))}: {size:,} bytes")


def merge_stores(
    stores: Annotated[
        list[Path], typer.Argument(metavar="STORE...", help="The stores of the shards.")
    ],
    target: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="The new store; must not exist yet."),
    ],
    as_json: options.JsonFlag = False,
) -> None:
    """Join the stores of `run --shard i/n` into FILE; `run` on the whole input then ends the job.

    Nothing is judged here. What the shards lack is said, and asked for by that run.

    Example: batchrank merge-stores shard-*.sqlite -o joined.sqlite
    """
    with _stores_as_arguments():
        joined = _merged(stores, target)
    talk = Talk()
    for remark in joined.remarks:
        talk.say(f"warning: {remark}")
    if as_json:
        print_json(asdict(joined))
        return
    typer.echo(
        f"{printable(str(target))}: {counted(joined.lines, 'line')}, {joined.rankings:,} rankings "
        f"and {joined.answers:,} answers of {counted(joined.shards, 'shard')} ({joined.size:,} "
        "bytes)"
    )


@contextmanager
def _stores_as_arguments() -> Iterator[None]:
    """Errors about stores that are no flag's: they advise another one all the same."""
    try:
        yield
    except (UsageError, StoreError) as error:
        said = str(error).replace(" with --store", "").replace(" to --store", "")
        raise type(error)(said) from error


def _merged(stores: Sequence[Path], target: Path) -> Joined:
    kept: dict[str, Path] = {}
    for number, store in enumerate(stores, 1):
        if not is_there(store):
            raise UsageError(f"there is no store at {store}: name the stores of the shards")
        for what, path in stored_files(store).items():
            kept[f"{what} of argument {number}"] = path
    if len({os.path.realpath(store) for store in stores}) < len(stores):
        raise UsageError("a store is named twice: name each once")
    check_output(str(target), kept)
    if target.exists():
        raise UsageError(f"{target} is there already; choose a name that is free")
    with ExitStack() as locks:
        for store in (*stores, target):
            locks.enter_context(store_lock(store))
        return run_loop(join(stores, target))


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
