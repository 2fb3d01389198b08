"""A publication under a clock of its own: ends of entries, the rate, stops and going on."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import pytest
import redis

from batchrank.errors import StoppedError
from batchrank.publishing.opening import open_target
from batchrank.publishing.publication import Publication, Published
from batchrank.publishing.rate import Rate
from batchrank.publishing.source import Lifetime, Source
from batchrank.publishing.target import Coverage, Entry, Header, Target
from batchrank.spec.publishspec import PublishSpec
from batchrank.store.store import Store
from tests.publishing.conftest import key, write_run
from tests.publishing.reading import docids_at
from tests.publishing.servers import RedisServer

DAY = 86_400.0
NEVER = PublishSpec(target="-", ttl="none")


class Wall:
    """The time of day, which a test sets."""

    def __init__(self) -> None:
        self.seconds = 1_793_758_380.0

    def __call__(self) -> float:
        return self.seconds


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


class Failing:
    """A target that fails after so many batches."""

    def __init__(self, target: Target, batches: int) -> None:
        self._left = batches
        self._write = target.write

    async def __call__(self, entries: Sequence[Entry], position: int) -> int:
        if self._left == 0:
            raise StoppedError("gone")
        self._left -= 1
        return await self._write(entries, position)


@asynccontextmanager
async def opened(store: Path, target: str, wall: Wall) -> AsyncIterator[tuple[Source, Target]]:
    """The latest run of a store, and a target."""
    place = await asyncio.to_thread(open_target, target, namespace="n", now=wall)
    opened = await Store.open(store)
    try:
        yield await Source.of(opened, await opened.run(), NEVER), place
    finally:
        await place.close()
        await opened.close()


async def publish(store: Path, target: str, wall: Wall, manner: PublishSpec) -> Published:
    """All of the latest run."""
    async with opened(store, target, wall) as (source, place):
        return await Publication(source, place, manner).run()


@pytest.fixture(params=["sqlite", "jsonl", "parquet"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A file of each kind."""
    return f"{request.param}:{tmp_path / 'cache'}"


async def test_what_is_carried_over_ends_when_it_was_to_end(store: Path, target: str) -> None:
    wall = Wall()
    manner = PublishSpec(target="-", ttl="2d", jitter=0.0)
    await write_run(store, {"a": ["d1"], "b": ["d2"]})
    await publish(store, target, wall, manner)
    for day, left in ((1, {"a", "b"}), (2.5, {"a"}), (4, {"a"})):
        wall.seconds = 1_793_758_380.0 + day * DAY
        await write_run(store, {"a": ["d1"]})
        ended = await publish(store, target, wall, manner)
        assert docids_at(target).keys() == {key(query) for query in left}
        assert ended.coverage.share == 1.0


async def test_without_a_ttl_nothing_ends(store: Path, target: str) -> None:
    wall = Wall()
    await write_run(store, {"a": ["d1"]})
    await publish(store, target, wall, NEVER)
    wall.seconds += 10_000 * DAY
    await write_run(store, {"b": ["d1"]})
    assert (await publish(store, target, wall, NEVER)).carried == 1


async def test_an_interrupted_publication_leaves_the_old_and_goes_on(
    store: Path, tmp_path: Path, target: str
) -> None:
    wall = Wall()
    await write_run(store, {f"q{n}": ["d1"] for n in range(50)})
    await publish(store, target, wall, NEVER)
    before = docids_at(target)
    await write_run(store, {f"q{n}": ["d2"] for n in range(40)})
    slow = PublishSpec(target="-", ttl="none", max_ops=100)  # ten at a time
    async with opened(store, target, wall) as (source, place):
        place.write = Failing(place, 2)  # type: ignore[method-assign]
        with pytest.raises(StoppedError, match="gone"):
            await Publication(source, place, slow, clock=Clock()).run()
    assert docids_at(target) == before
    ended = await publish(store, target, wall, NEVER)
    # A file is written from its beginning; a table goes on.
    assert ended.resumed == target.startswith("sqlite")
    assert (ended.entries, ended.written, ended.carried) == (50, 40, 10)
    assert docids_at(target) == {key(f"q{n}"): ["d2"] if n < 40 else ["d1"] for n in range(50)}


async def test_another_run_does_not_go_on_with_what_was_interrupted(
    store: Path, tmp_path: Path
) -> None:
    wall, target = Wall(), f"sqlite:{tmp_path / 'cache'}"
    await write_run(store, {f"q{n}": ["d1"] for n in range(50)})
    slow = PublishSpec(target="-", ttl="none", max_ops=100)
    async with opened(store, target, wall) as (source, place):
        place.write = Failing(place, 2)  # type: ignore[method-assign]
        with pytest.raises(StoppedError):
            await Publication(source, place, slow, clock=Clock()).run()
    await write_run(store, {"other": ["d1"]})
    ended = await publish(store, target, wall, NEVER)
    assert (ended.resumed, ended.entries) == (False, 1)
    with closing(sqlite3.connect(tmp_path / "cache")) as db:
        assert db.execute("SELECT count(*) FROM entries").fetchone() == (1,)


Meeting = Callable[[Target, Header], Awaitable[object]]


async def as_it_writes(place: Target, header: Header) -> None:
    await place.write([Entry(key("a"), b"{}", None)], 0)


async def as_it_carries(place: Target, header: Header) -> None:
    await place.carry("", copy=True)


async def as_it_ends(place: Target, header: Header) -> None:
    await place.switch()


@pytest.mark.parametrize("meeting", [as_it_writes, as_it_carries, as_it_ends])
@pytest.mark.parametrize("kind", ["sqlite", "redis"])
async def test_the_later_of_two_publications_wins_and_the_other_says_so(
    store: Path, tmp_path: Path, redis_server: RedisServer, meeting: Meeting, kind: str
) -> None:
    """What is left of the other is nothing, and its end takes nothing from the later."""
    wall = Wall()
    target = redis_server.url if kind == "redis" else f"sqlite:{tmp_path / 'cache'}"
    await write_run(store, {"z": ["d0"]})
    await publish(store, target, wall, NEVER)
    await write_run(store, {"a": ["d1"]})
    async with opened(store, target, wall) as (first, here):
        header = first.header(Lifetime(None), replace=False)
        await here.begin(header)
        await write_run(store, {"a": ["d2"], "b": ["d3"]})
        async with opened(store, target, wall) as (second, there):
            await there.begin(second.header(Lifetime(None), replace=False))
            with pytest.raises(StoppedError, match="another publication took over"):
                await meeting(here, header)
            with suppress(StoppedError):
                await here.discard()
            await there.write([Entry(key("a"), b'{"docids":["d2"]}', None)], 0)
            assert (await there.carry("", copy=True))[1] == Coverage(1, 1)
            assert await there.switch() == 2
            await there.prune(1)
    assert list(held(target).values()) == [2]


def held(target: str) -> dict[str, int]:
    """The entries of each generation that are there, whatever its state."""
    if target.startswith("sqlite"):
        with closing(sqlite3.connect(target.partition(":")[2])) as db:
            return dict(db.execute("SELECT generation, count(*) FROM entries GROUP BY generation"))
    with redis.Redis.from_url(target, decode_responses=True) as client:
        return Counter(name.split(":")[2] for name in client.scan_iter(match="n:gen:*"))


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
async def test_a_file_is_that_of_the_publication_that_ends_first(
    store: Path, tmp_path: Path, kind: str
) -> None:
    wall, target = Wall(), f"{kind}:{tmp_path / 'cache'}"
    await write_run(store, {"a": ["d1"]})
    await publish(store, target, wall, NEVER)
    async with opened(store, target, wall) as (first, here):
        await here.begin(first.header(Lifetime(None), replace=False))
        await write_run(store, {"b": ["d2"]})
        await publish(store, target, wall, NEVER)
        with pytest.raises(StoppedError, match="another publication took over"):
            await here.switch()
    assert docids_at(target) == {key("a"): ["d1"], key("b"): ["d2"]}
    left = await asyncio.to_thread(lambda: {path.name for path in tmp_path.glob("*cache*")})
    assert left == {"cache", "cache.1"}


async def test_what_became_current_meanwhile_is_carried(
    store: Path, tmp_path: Path, redis_server: RedisServer
) -> None:
    wall, target = Wall(), redis_server.url
    await write_run(store, {"a": ["d1"]})
    async with opened(store, target, wall) as (first, here):
        assert await here.current() is None
        await write_run(store, {"b": ["d2"]})
        await publish(store, target, wall, NEVER)
        await here.begin(first.header(Lifetime(None), replace=False))
        assert await here.carry("", copy=True) == ("", Coverage(1, 1))


async def test_a_stop_comes_after_the_batch_that_is_on_its_way(store: Path, tmp_path: Path) -> None:
    wall, target = Wall(), f"sqlite:{tmp_path / 'cache'}"
    await write_run(store, {f"q{n}": ["d1"] for n in range(50)})

    def tick(share: float, what: str) -> None:
        if share > 0.3:
            publication.stop(StoppedError("SIGTERM"))

    async with opened(store, target, wall) as (source, place):
        slow = PublishSpec(target="-", ttl="none", max_ops=100)
        publication = Publication(source, place, slow, clock=Clock(), tick=tick)
        with pytest.raises(StoppedError, match="SIGTERM"):
            await publication.run()
        assert publication.is_stopping
        assert await place.current() is None
    assert (await publish(store, target, wall, NEVER)).resumed


@pytest.mark.parametrize(("most", "seconds"), [(100, 3.0), (50_000, 0.006), (None, 0.0)])
async def test_the_rate_is_held(most: int | None, seconds: float) -> None:
    clock = Clock()
    rate = Rate(most, clock)
    sent = 0
    while sent < 300:
        await rate.spend(min(rate.batch, 300 - sent))
        sent += min(rate.batch, 300 - sent)
    await rate.spend(1)
    assert clock.seconds == pytest.approx(seconds)


async def test_a_publication_takes_its_time(store: Path, target: str) -> None:
    clock = Clock()
    await write_run(store, {f"q{n}": ["d1"] for n in range(50)})
    async with opened(store, target, Wall()) as (source, place):
        await Publication(
            source, place, PublishSpec(target="-", ttl="none", max_ops=10), clock=clock
        ).run()
    assert 4.8 <= clock.seconds <= 5.0
