"""Nights whose rankings are known, without a model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest

from batchrank.entries import DEFAULT_SCHEME, entry_key
from batchrank.keys import line_digest, short_hash
from batchrank.store.records import Line
from batchrank.store.store import Store
from batchrank.values import QueryStatus, RankedQuery
from tests.cli.running import Result, batchrank
from tests.publishing.reading import docids_at, values_at
from tests.publishing.servers import RedisServer, running_redis

Ranking = Sequence[str]


@dataclass
class Nights:
    """A store, and the command that publishes it."""

    store: Path
    target: str
    flags: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)

    def rank(self, rankings: Mapping[str, Ranking], **how: Any) -> None:
        """Another run, with these rankings by query; see `write_run`."""
        asyncio.run(write_run(self.store, rankings, **how))

    def publish(self, *flags: object) -> Result:
        """`batchrank publish` of the latest run."""
        given = ("publish", self.store, self.target, *self.flags, *flags)
        return batchrank(*given, env=self.env)

    def published(self, *flags: object) -> str:
        """What `publish` says where all is well."""
        ended = self.publish(*flags)
        assert ended.code == 0, ended.err
        return ended.out.decode()

    def values(self) -> dict[str, Any]:
        """The values of all current entries, by key."""
        return values_at(self.target)

    def docids(self) -> dict[str, list[str]]:
        """The docids of all current entries, by key."""
        return docids_at(self.target)

    def roll_back(self, *flags: str) -> Result:
        """`batchrank publish TARGET --rollback`."""
        given = (*self.flags, "--rollback", *flags)
        return batchrank("publish", self.target, *given, env=self.env)


async def write_run(
    path: Path,
    rankings: Mapping[str, Ranking],
    *,
    exit_code: int | None = 0,
    statuses: Mapping[str, str] | None = None,
    summary: Mapping[str, object] | None = None,
) -> None:
    """A run whose candidates are the sorted docids of each ranking; exit_code None: killed."""
    store = await Store.open(path, create=True)
    settings = {"model": "judge", "template": "direct-en@1"}
    run = await store.begin_run(b"job".ljust(20), settings, "in.jsonl", "out.jsonl", fresh=False)
    lines, writes = [], []
    for position, (query, ranking) in enumerate(rankings.items()):
        docids = sorted(ranking)
        places = {docid: place for place, docid in enumerate(docids)}
        ranked = RankedQuery(
            qid=f"q{position}",
            query=query,
            docids=tuple(docids),
            scores=(None,) * len(docids),
            order=tuple(places[docid] for docid in ranking),
            status=QueryStatus((statuses or {}).get(query, "ok")),
        )
        key = line_digest(orjson.dumps([run.id, position, query]))
        writes.append(store.add_ranking(key, run.job, ranked, retry=False))
        lines.append(Line(position, position + 1, short_hash(ranked.qid), key))
    await asyncio.gather(*writes, store.add_lines(run.id, lines))
    if exit_code is not None:
        await store.end_run(run.id, exit_code, summary or {})
    await store.close()


def key(query: str) -> str:
    """The key of a query as it is made unless other settings are given."""
    return entry_key(query, None, DEFAULT_SCHEME)


@pytest.fixture(scope="session")
def _redis_of_this_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with running_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def redis_server(_redis_of_this_process: RedisServer) -> RedisServer:
    """A Redis with nothing in it and no limits."""
    _redis_of_this_process.client.flushall()
    return _redis_of_this_process


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Where the store will be."""
    return tmp_path / "store.sqlite"
