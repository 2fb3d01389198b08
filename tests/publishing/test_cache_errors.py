"""Whatever keeps a cache from being read is one error, upon which the first stage's order stays."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from batchrank.cache import Cache, SyncCache
from batchrank.errors import TargetError
from tests.cli.running import free_port
from tests.publishing.conftest import Nights
from tests.publishing.servers import Breaking, RedisServer, running_redis

Place = Callable[[Path, RedisServer], str]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis with a password."""
    with running_redis(tmp_path_factory.mktemp("redis"), requirepass="s3cret") as server:
        yield server


def nobody_listens(folder: Path, redis: RedisServer) -> str:
    return f"redis://:s3cret@127.0.0.1:{free_port()}"


def no_password(folder: Path, redis: RedisServer) -> str:
    return redis.url


def wrong_password(folder: Path, redis: RedisServer) -> str:
    return redis.url.replace("//", "//:s3crets@")


def no_such_database(folder: Path, redis: RedisServer) -> str:
    return f"{with_password(redis)}99"


def a_pointer_of_another_kind(folder: Path, redis: RedisServer) -> str:
    redis.client.lpush("batchrank:current", "1")
    return with_password(redis)


def a_pointer_that_is_no_number(folder: Path, redis: RedisServer) -> str:
    redis.client.set("batchrank:current", "one")
    return with_password(redis)


def keys_of_a_later_version(folder: Path, redis: RedisServer) -> str:
    redis.client.set("batchrank:current", "1")
    redis.client.hset("batchrank:info:1", "scheme", "stemmed")
    return with_password(redis)


def no_entry(folder: Path, redis: RedisServer) -> str:
    redis.client.set("batchrank:current", "1")
    redis.client.hset("batchrank:info:1", "scheme", "none")
    redis.client.set(f"batchrank:gen:1:{DIGEST}", "{torn")
    return with_password(redis)


def no_file(folder: Path, redis: RedisServer) -> str:
    return f"sqlite:{folder}/none.sqlite"


def no_database(folder: Path, redis: RedisServer) -> str:
    (folder / "cache").write_bytes(b"no database" * 99)
    return f"sqlite:{folder}/cache"


def a_torn_database(folder: Path, redis: RedisServer) -> str:
    nights = Nights(folder / "store", f"sqlite:{folder}/cache")
    nights.rank({f"q{n}": ["d1", "d2"] for n in range(200)} | {"tides": ["d1"]})
    nights.published()
    path = folder / "cache"
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))
    return nights.target


def another_programs_database(folder: Path, redis: RedisServer) -> str:
    with closing(sqlite3.connect(folder / "other")) as db:
        db.execute("CREATE TABLE theirs (id)")
    return f"sqlite:{folder}/other"


DIGEST = "455e1885180dd4dca20bc0b37f40f0217c677feca558522e9fd7dae71fcc8f38"
"""Of the query `what causes tides`."""


def with_password(redis: RedisServer) -> str:
    return redis.url.replace("//", "//:s3cret@")


@pytest.mark.parametrize(
    "make",
    [
        *(nobody_listens, no_password, wrong_password, no_such_database),
        *(a_pointer_of_another_kind, a_pointer_that_is_no_number, keys_of_a_later_version),
        *(no_entry, no_file, no_database, a_torn_database, another_programs_database),
    ],
)
def test_it_is_one_error_that_names_the_place(
    tmp_path: Path, guarded: RedisServer, make: Place
) -> None:
    guarded.client.flushall()
    url = make(tmp_path, guarded)
    with SyncCache(url) as cache, pytest.raises(TargetError) as blocking:
        cache.get("what causes tides")

    async def get() -> None:
        async with Cache(url) as cache:
            await cache.get("what causes tides")

    with pytest.raises(TargetError) as awaited:
        asyncio.run(get())
    for found in (blocking.value, awaited.value):
        assert found.__cause__ is not None
        assert "s3c" not in str(found)
        place = f"redis://{url.partition('@')[2]}" if "@" in url else url
        assert str(found).startswith(("the cache", place))


def test_a_connection_that_drops(store: Path, redis_server: RedisServer) -> None:
    nights = Nights(store, redis_server.url)
    nights.rank({"tides": ["d2", "d1"]})
    nights.published()
    breaking = Breaking(redis_server.port, 10**6)

    async def drops() -> None:
        with SyncCache(breaking.url) as blocking:
            async with Cache(breaking.url) as cache:
                found = await asyncio.to_thread(blocking.get, "tides")
                assert (await cache.get("tides")).docids == found.docids == ("d2", "d1")
                breaking.drop()
                with pytest.raises(TargetError, match="can't be read"):
                    await cache.get("tides")
                with pytest.raises(TargetError, match="can't be read"):
                    await asyncio.to_thread(blocking.get, "tides")

    try:
        asyncio.run(drops())
    finally:
        breaking.close()


def test_a_cache_that_comes_to_be_is_read(store: Path, tmp_path: Path) -> None:
    nights = Nights(store, f"sqlite:{tmp_path}/cache")
    (tmp_path / "cache").write_bytes(b"no database" * 99)
    with SyncCache(nights.target) as cache:
        with pytest.raises(TargetError, match="not a database"):
            cache.get("tides")
        (tmp_path / "cache").unlink()
        with pytest.raises(TargetError, match="unable to open"):
            cache.get("tides")
        nights.rank({"tides": ["d2", "d1"]})
        nights.published()
        assert cache.get("tides").docids == ("d2", "d1")
