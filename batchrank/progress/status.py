"""The status file beside a store: a running job's latest snapshot, for other processes."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from functools import cache
from pathlib import Path

import orjson
from pydantic import TypeAdapter, ValidationError

from batchrank.progress.snapshot import Snapshot
from batchrank.store.connection import make_private


def status_path(store: Path) -> Path:
    """Where the runner of `store` tells how far it is."""
    return store.with_name(f"{store.name}.status")


def write_status(store: Path, snapshot: Snapshot) -> None:
    """Replace the status file at once; a status that can't be written is not worth a job.

    It holds texts of queries, so that it is for its owner alone, as the store is.
    """
    path = status_path(store)
    scratch = path.with_name(f"{path.name}.new")
    try:
        make_private(scratch)
        scratch.write_bytes(orjson.dumps(snapshot))
        scratch.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            scratch.unlink()
        if snapshot.exit_code is not None:
            _write_over(path, snapshot)


def _write_over(path: Path, snapshot: Snapshot) -> None:
    """Put how a run ended where its last snapshot is: on a full disk that room is there."""
    told = orjson.dumps(replace(snapshot, recent=(), trace=()))
    with contextlib.suppress(OSError), path.open("r+b") as file:
        file.write(told)
        file.truncate()


def read_status(store: Path) -> Snapshot | None:
    """What the runner of `store` told last.

    None where there is nothing to read, or another version of batchrank wrote it in its own way.
    """
    try:
        return _adapter().validate_json(status_path(store).read_bytes())
    except (OSError, ValidationError):
        return None


@cache
def _adapter() -> TypeAdapter[Snapshot]:
    return TypeAdapter(Snapshot)
