"""`batchrank publish` to a real Redis: ends, passwords, full memory, breaks, kills and readers."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path
from threading import Event, Thread

import pytest
import redis

from batchrank.cache import Cache, SyncCache
from batchrank.publishing.redis import RedisTarget
from batchrank.publishing.target import Entry
from tests.cli.running import batchrank, free_port, started
from tests.publishing.conftest import Nights, key
from tests.publishing.servers import Breaking, RedisServer, running_redis
from tests.waiting import PATIENCE, until

# Reads redis-py's metadata when it is loaded, which an online system does before its loop runs.
import_module("batchrank.cache.redis")

LONG = tuple(f"document-{n:05}" for n in range(100))


def many(count: int, first: str = "d") -> dict[str, Sequence[str]]:
    """So many queries with one ranking, which begins with `first`."""
    return {f"q{n}": (first, *LONG) for n in range(count)}


@pytest.fixture
def nights(store: Path, redis_server: RedisServer) -> Nights:
    """A store, and a Redis to publish to."""
    return Nights(store, redis_server.url)


def test_ends_are_spread_and_carried_over(nights: Nights, redis_server: RedisServer) -> None:
    client = redis_server.client
    nights.rank(many(50))
    nights.published("--ttl", "1h", "--jitter", "0.5")
    ends = {name: client.pexpiretime(name) for name in map(str, client.keys("batchrank:gen:1:*"))}
    now = client.time()[0] * 1000
    assert all(now + 1_700_000 < end <= now + 3_600_000 for end in ends.values())
    assert len(set(ends.values())) > 40
    nights.rank({"other": ["d1"]})
    nights.published("--ttl", "none")
    for name, end in ends.items():
        assert client.pexpiretime(name.replace(":1:", ":2:")) == end
    assert client.pexpiretime(f"batchrank:gen:2:{key('other')}") == -1


def list_at(key: str) -> Callable[[redis.Redis], object]:
    return lambda client: client.rpush(key, "theirs")


def text_at(key: str) -> Callable[[redis.Redis], object]:
    return lambda client: client.set(key, "theirs")


def fields_at(key: str) -> Callable[[redis.Redis], object]:
    return lambda client: client.hset(key, "theirs", "1")


@pytest.mark.parametrize("named", ["current", "next", "serial", "generations", "garbage", "info:1"])
@pytest.mark.parametrize("put", [list_at, text_at, fields_at])
def test_keys_of_another_program_are_left_alone(
    nights: Nights,
    redis_server: RedisServer,
    named: str,
    put: Callable[[str], Callable[[redis.Redis], object]],
) -> None:
    client, key = redis_server.client, f"batchrank:{named}"
    nights.rank({"a": ["d1"]})
    put(key)(client)
    before = client.dump(key)
    for refused in (nights.publish(), nights.publish("--dry-run"), nights.roll_back()):
        assert refused.code == 2
        assert f"the key {key} there is another program's" in refused.err
    assert client.keys() == [key]
    assert client.dump(key) == before


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("scheme", "", "made in a way that is not known here"),
        ("scheme", "new", "made in a way that is not known here"),
        ("entries", "many", "is another program's"),
    ],
)
def test_what_is_told_of_a_generation_is_not_believed_blindly(
    nights: Nights, redis_server: RedisServer, field: str, value: str, said: str
) -> None:
    nights.rank({"a": ["d1"]})
    nights.published()
    redis_server.client.hset("batchrank:info:1", field, value)
    nights.rank({"a": ["d2"]})
    refused = nights.publish()
    assert refused.code == 2
    assert said in refused.err


def test_a_generation_of_which_nothing_is_told_can_be_replaced(
    nights: Nights, redis_server: RedisServer
) -> None:
    nights.rank({"a": ["d1"]})
    nights.published()
    redis_server.client.delete("batchrank:info:1")
    nights.rank({"a": ["d2"]})
    refused = nights.publish()
    assert refused.code == 2
    assert "how the keys of generation 1 are made was lost" in refused.err
    assert "made another way" not in refused.err
    nights.published("--replace", "--min-coverage", "0")
    assert nights.docids() == {key("a"): ["d2"]}
    assert nights.roll_back().code == 2


def test_nothing_else_is_touched(nights: Nights, redis_server: RedisServer) -> None:
    client = redis_server.client
    client.set("batchrank:gen", "theirs")
    client.set("other:gen:1:x", "theirs")
    nights.flags = ("--namespace", "search.de")
    for docid in ("d1", "d2", "d3"):
        nights.rank({"a": [docid]})
        nights.published("--keep", "1")
    assert sorted(client.keys()) == [
        "batchrank:gen",
        "other:gen:1:x",
        "search.de:current",
        f"search.de:gen:3:{key('a')}",
        "search.de:generations",
        "search.de:info:3",
        "search.de:serial",
    ]
    with SyncCache(nights.target, namespace="search.de") as cache:
        assert cache.get("A").docids == ("d3",)
    with SyncCache(nights.target) as cache:
        assert cache.get("A", ["x"]).generation is None


def test_passwords(store: Path, tmp_path: Path) -> None:
    with running_redis(tmp_path, requirepass="s3cret") as server:
        nights = Nights(store, server.url)
        nights.rank({"a": ["d1"]})
        for refused in (nights.publish(), nights.roll_back()):
            assert refused.code == 2
            assert "--password-env" in refused.err
        nights.env = {"THE_PASSWORD": "s3cret", "WRONG": "no"}
        assert nights.publish("--password-env", "WRONG").code == 2
        nights.published("--password-env", "THE_PASSWORD")
        with SyncCache(server.url, password="s3cret") as cache:
            assert cache.get("a").docids == ("d1",)

        nights.target = server.url.replace("redis://", "redis://:s3cret@")
        nights.rank({"a": ["d2"]})
        told = nights.publish("--dry-run")
        assert "s3cret" not in told.out.decode() + told.err
        nights.published()


@pytest.mark.parametrize(
    ("policy", "said"),
    [("noeviction", "its writes would fail"), ("allkeys-lru", "it would evict live keys")],
)
def test_a_full_memory_is_noticed_before(
    store: Path, tmp_path: Path, policy: str, said: str
) -> None:
    limits = {"maxmemory": "12mb", "maxmemory_policy": policy}
    with running_redis(tmp_path, **limits) as server:
        nights = Nights(store, server.url)
        nights.rank(many(1000))
        nights.published()
        before = sorted(server.client.keys())
        nights.rank(many(3000, "e"))
        for flags in ((), ("--dry-run",)):
            refused = nights.publish(*flags)
            assert refused.code == 1
            assert said in refused.err
        assert sorted(server.client.keys()) == before
        assert server.client.info("stats")["evicted_keys"] == 0
        server.client.config_set("maxmemory", "0")
        nights.published()


def test_what_is_advised_can_help(store: Path, tmp_path: Path) -> None:
    with running_redis(tmp_path, maxmemory="3mb") as server:
        nights = Nights(store, server.url)
        nights.rank(many(200))
        refused = nights.publish()
        assert "(0.6 MB for entries, a tenth of that to be sure, and 4.0 MB for" in refused.err
        assert refused.err.rstrip().endswith(": raise maxmemory")
        for flags in ([], ["--json"]):
            outlook = nights.publish("--dry-run", *flags)
            assert (outlook.code, outlook.err) == (1, refused.err)
        assert outlook.json["refusal"] in refused.err
        server.client.config_set("maxmemory", "100mb")
        for night in range(2):
            nights.rank({f"{night} {query}": docids for query, docids in many(1000).items()})
            nights.published()
        nights.rank({f"2 {query}": docids for query, docids in many(1000).items()})
        server.client.config_set(
            "maxmemory", server.client.info("memory")["used_memory"] + 9_000_000
        )
        refused = nights.publish()
        assert refused.code == 1
        assert "raise maxmemory, or keep fewer generations (--keep 1), or drop" in refused.err
        nights.published("--keep", "1", "--replace", "--min-coverage", "0")


def test_the_estimate_is_near_the_truth(nights: Nights, redis_server: RedisServer) -> None:
    client = redis_server.client
    nights.rank(many(3000))
    before = client.info("memory")["used_memory"]
    told = nights.publish("--dry-run", "--json").json["needed_bytes"]
    nights.published()
    taken = client.info("memory")["used_memory"] - before
    assert 0.9 < told / taken < 1.3
    # Of 4,000 keys then, a quarter is carried.
    nights.rank({**many(2000), **{f"new {query}": docids for query, docids in many(1000).items()}})
    told = nights.publish("--dry-run", "--json").json["needed_bytes"]
    before = client.info("memory")["used_memory"]
    nights.published()
    taken = client.info("memory")["used_memory"] - before
    assert 0.8 < told / taken < 1.4


def after_the_first_batch(act: Callable[[], object]) -> Callable[..., object]:
    """A `RedisTarget.write` that does something else too, once."""
    real = RedisTarget.write
    done = False

    async def write(self: RedisTarget, entries: Sequence[Entry], position: int) -> int:
        nonlocal done
        written = await real(self, entries, position)
        if not done:
            done = True
            await asyncio.to_thread(act)
        return written

    return write


def test_memory_that_ends_in_the_middle(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_redis(tmp_path, maxmemory="100mb") as server:
        nights = Nights(store, server.url)
        nights.rank(many(10))
        nights.published()
        nights.rank(many(3000, "e"))
        with monkeypatch.context() as patch:
            shrink = after_the_first_batch(lambda: server.client.config_set("maxmemory", "1mb"))
            patch.setattr(RedisTarget, "write", shrink)
            ended = nights.publish()
        assert ended.code == 75
        assert "has no memory left; readers keep what they have" in ended.err
        assert server.client.get("batchrank:current") == "1"
        server.client.config_set("maxmemory", "100mb")
        assert "went on where it was interrupted" in nights.published()
        assert len(nights.docids()) == 3000


def test_entries_that_are_evicted_meanwhile(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what has a TTL is evicted under this policy: the pointer stays."""
    with running_redis(tmp_path, maxmemory="100mb", maxmemory_policy="volatile-lru") as server:
        nights = Nights(store, server.url)
        nights.rank({"a": ["d1"]})
        nights.published("--ttl", "none")
        nights.rank(many(2000, "e"))

        def evict() -> None:
            """Lack memory for a while: writes meanwhile might fail where none is left to evict."""
            server.client.config_set("maxmemory", "1mb")
            until(lambda: server.client.info("stats")["evicted_keys"])
            server.client.config_set("maxmemory", "100mb")

        with monkeypatch.context() as patch:
            patch.setattr(RedisTarget, "write", after_the_first_batch(evict))
            ended = nights.publish()
        assert ended.code == 1
        assert "evicted for lack of memory" in ended.err
        assert nights.docids() == {key("a"): ["d1"]}
        assert server.client.keys("batchrank:gen:2:*") == []


def test_entries_are_counted_where_the_server_was_started_anew(
    nights: Nights, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or evicted a key of others: all of them may be there."""
    nights.rank({"old": ["d1"]})
    nights.published()
    nights.rank(many(1500, "e"))

    def be_another() -> None:
        redis_server.client.hset("batchrank:info:2", "server", "another 0")

    with monkeypatch.context() as patch:
        patch.setattr(RedisTarget, "write", after_the_first_batch(be_another))
        assert "1,501 entries, 1,500 from this run, 1 carried over" in nights.published()


def flush(client: redis.Redis) -> None:
    client.flushdb()


def evict_the_pointer(client: redis.Redis) -> None:
    client.delete("batchrank:next")


def evict_what_is_told(client: redis.Redis) -> None:
    client.delete("batchrank:info:2")


def evict_all_but_entries(client: redis.Redis) -> None:
    client.delete(*(key for key in client.keys("batchrank:*") if ":gen:" not in str(key)))


@pytest.mark.parametrize(
    "lose", [flush, evict_the_pointer, evict_what_is_told, evict_all_but_entries]
)
@pytest.mark.parametrize("queries", [5, 1500])
def test_what_is_lost_meanwhile_is_not_taken_for_another_publication(
    nights: Nights,
    redis_server: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
    lose: Callable[[redis.Redis], None],
    queries: int,
) -> None:
    """Whether it is noticed as the next batch is written, or at the switch."""
    client = redis_server.client
    nights.rank({"old": ["d1"]})
    nights.published()
    nights.rank(many(queries))
    with monkeypatch.context() as patch:
        patch.setattr(RedisTarget, "write", after_the_first_batch(lambda: lose(client)))
        ended = nights.publish()
    assert ended.code == 1
    assert "was flushed: raise maxmemory and publish again" in ended.err
    assert "another publication" not in ended.err
    assert f"{queries:,} from this run" in nights.published("--replace", "--min-coverage", "0")
    generation = str(client.get("batchrank:current"))
    assert len(client.keys(f"batchrank:gen:{generation}:*")) == queries


@pytest.mark.parametrize("most", [200_000, 3_000_000])
def test_a_connection_that_drops_in_the_middle(
    nights: Nights, redis_server: RedisServer, most: int
) -> None:
    nights.rank(many(10))
    nights.published()
    nights.rank(many(3000, "e"))
    with closing(Breaking(redis_server.port, most)) as proxy:
        broken = Nights(nights.store, proxy.url)
        ended = broken.publish()
    assert ended.code == 75, ended.err
    assert "is gone" in ended.err
    assert "readers keep what they have" in ended.err
    assert redis_server.client.get("batchrank:current") == "1"
    text = nights.published()
    assert "generation 2 is current: 3,000 entries, 3,000 from this run, 0 carried over" in text
    assert ("went on where it was interrupted" in text) == (most > 1_000_000)


def test_kill_9_in_the_middle(nights: Nights, redis_server: RedisServer, tmp_path: Path) -> None:
    client = redis_server.client
    nights.rank(many(10))
    nights.published()
    nights.rank(many(2000, "e"))
    process = started("publish", nights.store, nights.target, "--max-ops", "200", cwd=tmp_path)
    until(lambda: int(client.hget("batchrank:info:2", "position") or -1) > 50)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert client.get("batchrank:current") == "1"
    done = int(client.hget("batchrank:info:2", "written") or 0)
    assert 50 < done < 2000
    assert "2,000 from this run, 0 carried over" in nights.published()
    assert client.get("batchrank:current") == "2"
    assert {docids[0] for docids in nights.docids().values()} == {"e"}


def test_sigterm_ends_it_resumable(
    nights: Nights, redis_server: RedisServer, tmp_path: Path
) -> None:
    client = redis_server.client
    nights.rank(many(2000))
    process = started("publish", nights.store, nights.target, "--max-ops", "200", cwd=tmp_path)
    until(lambda: int(client.hget("batchrank:info:1", "position") or -1) > 50)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 75, err
    assert "SIGTERM received" in err
    assert "went on where it was interrupted" in nights.published()


def test_readers_see_one_generation_at_a_time(nights: Nights, redis_server: RedisServer) -> None:
    """Each look-up is of one generation, and none goes back to an earlier one."""
    queries = 200
    nights.rank(many(queries, "1"))
    nights.published()
    stop, wrong, seen = Event(), list[str](), set[int]()

    def read() -> None:
        last = 0
        with SyncCache(nights.target) as cache:
            while not stop.is_set():
                for n in range(queries):
                    found = cache.get(f"q{n}")
                    generation = found.generation or 0
                    seen.add(generation)
                    if found.docids[:1] != (str(generation),) or generation < last:
                        wrong.append(f"{n}: {found} after {last}")
                    last = generation

    readers = [Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for night in range(2, 7):
            nights.rank(many(queries, str(night)))
            nights.published("--keep", "1")
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert wrong == []
    assert len(seen) > 1


def test_the_asynchronous_cache(nights: Nights) -> None:
    nights.rank({"Tides": ["d2", "d1"]})
    nights.published("--normalise", "none", "--key-candidates")

    async def look() -> None:
        async with Cache(nights.target) as cache:
            found = await cache.get("Tides", ["d1", "d2"])
            assert (found.status, found.docids) == ("hit", ("d2", "d1"))
            assert (await cache.get("Tides", ["d1", "d3"])).status == "miss"

    asyncio.run(look())


def test_servers_that_can_not_be_used(
    nights: Nights, redis_server: RedisServer, tmp_path: Path
) -> None:
    nights.rank({"a": ["d1"]})
    gone = Nights(nights.store, f"redis://127.0.0.1:{free_port()}/0").publish()
    assert gone.code == 1
    assert "can't be reached" in gone.err
    assert Nights(nights.store, "redis://127.0.0.1:port/0").publish().code == 2
    redis_server.client.replicaof("127.0.0.1", "1")
    try:
        replica = nights.publish()
    finally:
        redis_server.client.replicaof("no", "one")
    assert replica.code == 2
    assert "read-only replica" in replica.err


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://127.0.0.1:1/5?foo=1", "foo"),
        ("redis://127.0.0.1:1/4/9x", "the database behind the port is a number"),
        ("redis://127.0.0.1:1/abc", "the database behind the port is a number"),
        ("redis://:p@ss:x/rd@127.0.0.1:1/1", "--password-env"),
    ],
)
def test_a_url_that_can_not_be_meant_is_refused_without_its_password(
    nights: Nights, url: str, said: str
) -> None:
    nights.rank({"a": ["d1"]})
    refused = batchrank("publish", nights.store, url)
    assert refused.code == 2
    assert said in refused.err
    assert "ss:x" not in refused.err
