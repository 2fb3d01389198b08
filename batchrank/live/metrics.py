"""Metrics of a run for Prometheus: a page to scrape, and a file for node_exporter."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from aiohttp import web
from prometheus_client import generate_latest
from prometheus_client.exposition import choose_encoder
from prometheus_client.parser import text_string_to_metric_families

from batchrank.errors import DiskError
from batchrank.formats.atomic import AtomicFile
from batchrank.live.prometheus import LAST_PUBLICATION, LAST_SUCCESS, registry_of
from batchrank.progress.snapshot import Snapshot

_SECONDS_A_FILE = 15.0
_OURS = b"# HELP batchrank_"


class Scraped:
    """`app` answers GET /metrics with what `tick` was given last."""

    def __init__(self) -> None:
        self.app = web.Application()
        self.app.router.add_get("/metrics", self._metrics)
        self._latest: Snapshot | None = None

    def tick(self, snapshot: Snapshot) -> None:
        """Take a snapshot."""
        self._latest = snapshot

    async def _metrics(self, request: web.Request) -> web.Response:
        if self._latest is None:
            raise web.HTTPServiceUnavailable(text="the run has not begun yet\n")
        encode, kind = choose_encoder(request.headers.get("Accept", ""))
        body = encode(registry_of(self._latest))
        return web.Response(body=body, headers={"Content-Type": kind})


class Textfile:
    """Replaces the file at `path` every 15 s with what `tick` was given last, and at the end.

    A file that can't be written is said once and is not worth a night.
    """

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        self._path = path
        self._say = say
        self._told = False
        self._latest: Snapshot | None = None
        self._next = 0.0
        self._writing: asyncio.Task[None] | None = None
        self._earlier: Mapping[str, float] = {}

    async def __aenter__(self) -> Textfile:
        self._earlier = await asyncio.to_thread(_lasts, self._path)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._writing is not None:
            await self._writing
        if self._latest is not None:
            await self._write(self._latest)

    def tick(self, snapshot: Snapshot) -> None:
        """Take a snapshot."""
        self._latest = snapshot
        is_busy = self._writing is not None and not self._writing.done()
        if snapshot.seconds >= self._next and not is_busy:
            self._next = snapshot.seconds + _SECONDS_A_FILE
            self._writing = asyncio.create_task(self._write(snapshot))

    async def _write(self, snapshot: Snapshot) -> None:
        data = generate_latest(registry_of(snapshot, self._earlier))
        try:
            await asyncio.to_thread(_replace, self._path, data)
        except DiskError as error:
            if not self._told:
                self._say(
                    f"warning: metrics: {error.fault}; the run goes on, but alerts may take it "
                    "for killed"
                )
            self._told = True


def leave(path: Path, snapshot: Snapshot) -> None:
    """Put into the file at `path` how a command ended of which no run came.

    Not where there is something else than metrics. Raises DiskError.
    """
    with suppress(FileNotFoundError):
        if not path.read_bytes().startswith(_OURS):
            return
    _replace(path, generate_latest(registry_of(snapshot, _lasts(path))))


def _replace(path: Path, data: bytes) -> None:
    with AtomicFile(str(path)) as file:
        file.write(data)


def _lasts(path: Path) -> dict[str, float]:
    """What the file of earlier runs says: a failed night must not forget it."""
    try:
        families = list(text_string_to_metric_families(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}
    values = {one.name: one.value for family in families for one in family.samples}
    names = (LAST_SUCCESS, LAST_PUBLICATION)
    return {name: values[f"batchrank_{name}"] for name in names if f"batchrank_{name}" in values}
