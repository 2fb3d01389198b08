"""Tells targets apart by how they are written: `redis://…`, `sqlite:FILE`, `jsonl:FILE`, ….

What only some need is imported when it is asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from batchrank.entries import is_namespace
from batchrank.errors import UsageError
from batchrank.formats.wording import quoted
from batchrank.publishing.files import FileTarget
from batchrank.publishing.jsonl import Jsonl
from batchrank.publishing.sqlite import SqliteTarget
from batchrank.publishing.target import Target

REDIS = ("redis", "rediss", "unix")
FILES = ("sqlite", "jsonl", "parquet")


def is_target(text: str) -> bool:
    """Whether a text is written as a target is."""
    kind, colon, name = text.partition(":")
    return bool(colon and name) and (kind in FILES or (kind in REDIS and name.startswith("//")))


def target_path(text: str) -> Path | None:
    """The file that a target is, None for Redis; raises UsageError where it is no target."""
    kind, _, name = text.partition(":")
    if not is_target(text):
        raise UsageError(
            f"{_hidden(text)} is no target: give redis://HOST:PORT/DB, sqlite:FILE, jsonl:FILE or "
            "parquet:FILE"
        )
    if kind in REDIS:
        return None
    path = Path(name)
    if path.is_dir():
        raise UsageError(f"the target {quoted(path)} is a folder: give a file name in it")
    if not path.parent.is_dir():
        raise UsageError(f"the target {quoted(path)}: create its folder, or choose another")
    return path


def open_target(
    text: str,
    *,
    namespace: str,
    password: str | None = None,
    now: Callable[[], float] = time.time,
) -> Target:
    """The target that `text` names; nothing is asked of it or written yet.

    `namespace` and `password` are those of Redis, `now` is the clock of all others, in seconds
    since the epoch. Raises UsageError, also where a package is missing.
    """
    if not is_namespace(namespace):
        raise UsageError(f"--namespace {namespace!r}: use letters, digits, _ . : and -")
    path = target_path(text)
    if path is None:
        try:
            from batchrank.publishing.redis import RedisTarget  # noqa: PLC0415 - needs an extra
        except ImportError as error:
            raise UsageError(
                "redis: needs redis-py: install batchrank with the extra redis"
            ) from error
        return RedisTarget(text, namespace, password)
    if text.startswith("sqlite:"):
        return SqliteTarget(path, now)
    if text.startswith("jsonl:"):
        return FileTarget(path, Jsonl(), now)
    try:
        from batchrank.publishing.parquet import Parquet  # noqa: PLC0415 - needs an extra
    except ImportError as error:
        raise UsageError(
            "parquet: needs pyarrow: install batchrank with the extra parquet"
        ) from error
    return FileTarget(path, Parquet(), now)


def _hidden(text: str) -> str:
    """A target without what may be a password in it."""
    return quoted(text.rpartition("@")[2])
