"""Nights whose rankings are known, without a model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
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

    def roll_back(self) -> Result:
        """`batchrank publish TARGET --rollback`."""
        return batchrank("publish", self.target, *self.flags, "--rollback", env=self.env)


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
    lines = []
    for position, (query, ranking) in enumerate(rankings.items()):
        docids = sorted(ranking)
        ranked = RankedQuery(
            qid=f"q{position}",
            query=query,
            docids=tuple(docids),
            scores=(None,) * len(docids),
            order=tuple(docids.index(docid) for docid in ranking),
            status=QueryStatus((statuses or {}).get(query, "ok")),
        )
        key = line_digest(orjson.dumps([run.id, position, query]))
        await store.add_ranking(key, run.job, ranked, retry=False)
        lines.append(Line(position, position + 1, short_hash(ranked.qid), key))
    await store.add_lines(run.id, lines)
    if exit_code is not None:
        await store.end_run(run.id, exit_code, summary or {})
    await store.close()


def key(query: str) -> str:
    """The key of a query as it is made unless other settings are given."""
    return entry_key(query, None, DEFAULT_SCHEME)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Where the store will be."""
    return tmp_path / "store.sqlite"
