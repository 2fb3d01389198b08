"""A cache of rankings, looked up by query: asynchronous, and the same without an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, Self

from batchrank.cache.lookup import Found, Reply, look_up
from batchrank.cache.sqlite import SqliteReader
from batchrank.entries import DEFAULT_SCHEME, is_namespace


class _SyncReader(Protocol):
    def read(self, key: str) -> Reply | None: ...
    def close(self) -> None: ...


class _Reader(Protocol):
    async def read(self, key: str) -> Reply | None: ...
    async def close(self) -> None: ...


class Cache:
    """What `batchrank publish` wrote to `url`: `redis://HOST:PORT/DB` or `sqlite:FILE`.

    `namespace` and `password` are those of Redis. Each look-up sees one generation; when another
    becomes current, the next look-up sees that. How keys are made is read there.

    Raises ValueError for another kind of URL, and ImportError where redis is not installed.
    """

    def __init__(
        self, url: str, *, namespace: str = "batchrank", password: str | None = None
    ) -> None:
        if (path := _file(url, namespace)) is not None:
            self._reader: _Reader = _InThread(SqliteReader(path))
        else:
            from batchrank.cache.redis import AsyncRedisReader  # noqa: PLC0415 - needs an extra

            self._reader = AsyncRedisReader(url, namespace, password)
        self._scheme = DEFAULT_SCHEME

    async def get(self, query: str, candidates: Sequence[str | int] | None = None) -> Found:
        """The stored order of a query's documents, limited to `candidates` where they are given.

        Candidates that the entry does not have follow in the order given; integers count as their
        digits. Raises batchrank.errors.TargetError where the cache can't be read, whatever the
        reason, and ValueError where the query is no text, a candidate is no docid, or the keys
        include the candidates and none are given.
        """
        lookup = look_up(query, candidates, self._scheme)
        try:
            key = next(lookup)
            while True:
                key = lookup.send(await self._reader.read(key))
        except StopIteration as end:
            found: Found
            found, self._scheme = end.value
            return found

    async def close(self) -> None:
        """Close the connections."""
        await self._reader.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class SyncCache:
    """As `Cache`, blocking while it asks; threads may share one."""

    def __init__(
        self, url: str, *, namespace: str = "batchrank", password: str | None = None
    ) -> None:
        if (path := _file(url, namespace)) is not None:
            self._reader: _SyncReader = SqliteReader(path)
        else:
            from batchrank.cache.redis import RedisReader  # noqa: PLC0415 - needs an extra

            self._reader = RedisReader(url, namespace, password)
        self._scheme = DEFAULT_SCHEME

    def get(self, query: str, candidates: Sequence[str | int] | None = None) -> Found:
        """See `Cache.get`."""
        lookup = look_up(query, candidates, self._scheme)
        try:
            key = next(lookup)
            while True:
                key = lookup.send(self._reader.read(key))
        except StopIteration as end:
            found: Found
            found, self._scheme = end.value
            return found

    def close(self) -> None:
        """Close the connections."""
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _InThread:
    """A reader that blocks, as one that doesn't."""

    def __init__(self, reader: _SyncReader) -> None:
        self._reader = reader

    async def read(self, key: str) -> Reply | None:
        return await asyncio.to_thread(self._reader.read, key)

    async def close(self) -> None:
        await asyncio.to_thread(self._reader.close)


def _file(url: str, namespace: str) -> Path | None:
    """The SQLite file that a URL names, None for Redis; ValueError for anything else."""
    if not is_namespace(namespace):
        raise ValueError(f"namespace {namespace!r}: use letters, digits, _ . : and -")
    kind, _, name = url.partition(":")
    if kind == "sqlite" and name:
        return Path(name)
    if kind in ("redis", "rediss", "unix"):
        return None
    raise ValueError("give redis://HOST:PORT/DB or sqlite:FILE")
