"""Measures `batchrank publish` beside a bare redis-py pipeline that writes the same bytes.

    python scripts/bench_publish.py                          # 100,000 entries of 100 documents
    python scripts/bench_publish.py --entries 20000 --runs 3

It starts a redis-server of its own. What counts is the ratio of two measurements of one run, which
follow each other: machines differ and are noisy. Then it looks entries up, one after the other.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import redis
import uvloop

from batchrank.cache import Cache, SyncCache
from batchrank.keys import line_digest, short_hash
from batchrank.publishing.making import target_of
from batchrank.publishing.publication import Publication
from batchrank.publishing.source import Source
from batchrank.spec.publishspec import PublishSpec
from batchrank.store.records import Line
from batchrank.store.store import Store
from batchrank.values import QueryStatus, RankedQuery

CHUNK = 2000
PIPELINE = 1000
LOOK_UPS = 5000
TARGET = 0.6
SLOWEST = 0.001


async def write_store(path: Path, entries: int, documents: int) -> None:
    """A run with so many rankings of so many documents."""
    chance = random.Random(7)
    store = await Store.open(path, create=True)
    settings = {"model": "qwen3:8b", "template": "direct-en@1"}
    run = await store.begin_run(b"bench".ljust(20), settings, "in", "out", fresh=False)
    for begin in range(0, entries, CHUNK):
        lines, writes = [], []
        for position in range(begin, min(begin + CHUNK, entries)):
            order = list(range(documents))
            chance.shuffle(order)
            ranked = RankedQuery(
                qid=f"q{position}",
                query=f"What do people ask in query {position}?",
                docids=tuple(f"{chance.getrandbits(32):08x}" for _ in range(documents)),
                scores=tuple(round(20 - place / 8, 3) for place in range(documents)),
                order=tuple(order),
                status=QueryStatus.OK,
                answers=tuple(range(6 * position, 6 * position + 6)),
            )
            key = line_digest(str(position).encode())
            lines.append(Line(position, position + 1, short_hash(ranked.qid), key))
            writes.append(store.add_ranking(key, run.job, ranked, retry=False))
        await asyncio.gather(*writes, store.add_lines(run.id, lines))
    await store.end_run(run.id, 0, {"queries": {"ok": entries}})
    await store.close()


@contextmanager
def running_redis(folder: Path) -> Iterator[str]:
    """The URL of a server that keeps nothing on disk."""
    program = shutil.which("redis-server")
    if program is None:
        raise SystemExit("install redis-server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    call = [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
    process = subprocess.Popen(
        [*call, "--save", "", "--appendonly", "no"], stdout=subprocess.DEVNULL
    )
    try:
        with redis.Redis(port=port) as client:
            while True:
                try:
                    client.ping()
                    break
                except redis.ConnectionError:
                    time.sleep(0.02)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait()


def bare(url: str, pairs: Sequence[tuple[bytes, bytes]]) -> float:
    """Entries a second of a pipeline that sets these keys and values, with an end each."""
    end = int(time.time()) + 86_400
    with redis.Redis.from_url(url) as client:
        client.flushall()
        started = time.perf_counter()
        for begin in range(0, len(pairs), PIPELINE):
            with client.pipeline(transaction=False) as pipeline:
                for key, value in pairs[begin : begin + PIPELINE]:
                    pipeline.set(key, value, exat=end)
                pipeline.execute()
        seconds = time.perf_counter() - started
        client.flushall()
    return len(pairs) / seconds


async def publish(store: Path, url: str) -> float:
    """Entries a second of a publication, from the opened store to the end of its clearing up."""
    spec = PublishSpec(target=url)
    target = await asyncio.to_thread(target_of, spec)
    opened = await Store.open(store)
    started = time.perf_counter()
    source = await Source.of(opened, await opened.run(), spec)
    ended = await Publication(source, target, spec).run()
    seconds = time.perf_counter() - started
    await target.close()
    await opened.close()
    return (ended.entries or 0) / seconds


def pairs_in(url: str) -> list[tuple[bytes, bytes]]:
    """All entries there."""
    with redis.Redis.from_url(url) as client:
        keys = list(client.scan_iter(match="batchrank:gen:*", count=PIPELINE))
        values = []
        for begin in range(0, len(keys), PIPELINE):
            values += client.mget(keys[begin : begin + PIPELINE])
    return list(zip(keys, values, strict=True))


def look_up(url: str, entries: int) -> tuple[float, float]:
    """The median and the 99th percentile of a synchronous look-up, in seconds."""
    chance = random.Random(3)
    times = []
    with SyncCache(url) as cache:
        for _ in range(LOOK_UPS):
            query = f"what do people ask in query {chance.randrange(entries)}?"
            started = time.perf_counter()
            found = cache.get(query)
            times.append(time.perf_counter() - started)
            assert found.status == "hit", found
    return statistics.median(times), statistics.quantiles(times, n=100)[98]


async def look_up_asynchronously(url: str, entries: int) -> tuple[float, float]:
    """The same of the asynchronous one."""
    chance = random.Random(3)
    times = []
    async with Cache(url) as cache:
        for _ in range(LOOK_UPS):
            query = f"what do people ask in query {chance.randrange(entries)}?"
            started = time.perf_counter()
            found = await cache.get(query)
            times.append(time.perf_counter() - started)
            assert found.status == "hit", found
    return statistics.median(times), statistics.quantiles(times, n=100)[98]


def main() -> None:
    """Run and print; exit 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--documents", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        store = Path(name) / "store.sqlite"
        uvloop.run(write_store(store, given.entries, given.documents))
        with running_redis(Path(name)) as url:
            ratios = []
            uvloop.run(publish(store, url))
            pairs = pairs_in(url)
            size = sum(len(key) + len(value) for key, value in pairs) / len(pairs)
            print(f"{len(pairs):,} entries of {size:,.0f} bytes (key and value)")
            for _ in range(given.runs):
                floor = bare(url, pairs)
                rate = uvloop.run(publish(store, url))
                ratios.append(rate / floor)
                print(f"bare {floor:,.0f}/s, publish {rate:,.0f}/s: {rate / floor:.2f}")
            found = {
                "get": look_up(url, given.entries),
                "await get": uvloop.run(look_up_asynchronously(url, given.entries)),
            }
    ratio = statistics.median(ratios)
    print(f"median ratio {ratio:.2f} (target {TARGET})")
    for what, (median, late) in found.items():
        print(f"{what}: median {median * 1000:.3f} ms, 99th percentile {late * 1000:.3f} ms")
    is_met = ratio >= TARGET and all(median < SLOWEST for median, _ in found.values())
    raise SystemExit(0 if is_met else 1)


if __name__ == "__main__":
    main()
