"""Generations of cache entries in Redis: a key an entry, and a pointer to the current ones."""

from __future__ import annotations

import re
import ssl
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from struct import Struct
from typing import Any
from urllib.parse import parse_qs, urlsplit

from redis import exceptions
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff
from redis.driver_info import DriverInfo

from batchrank.cache.redis import shown
from batchrank.errors import TargetError, UsageError
from batchrank.formats.wording import quoted
from batchrank.publishing import scripts
from batchrank.publishing.memory import Memory, entry_bytes, refusal
from batchrank.publishing.redis_errors import meaning
from batchrank.publishing.redis_state import State, read_state, text_of
from batchrank.publishing.target import (
    Begun,
    Coverage,
    Entry,
    Generation,
    Header,
    Plan,
    Room,
    one_before,
)

_DATABASE = re.compile(r"/?\d*")
_DRIVER = DriverInfo()
"""Made here, since making it reads a file, which would hold up the event loop."""
_OLDEST = (6, 2)
"""COPY, and SET with PXAT, are there since."""
_ENDS_AND_LENGTH = Struct(">dI")
_LENGTH = Struct(">I")
_PAGE = 1000
_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 30.0
_RETRIES = 3
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0


class RedisTarget:
    """See `Target`. `namespace` is what all its keys begin with."""

    def __init__(self, url: str, namespace: str, password: str | None) -> None:
        self.name = shown(url)
        self._namespace = namespace
        _check_authority(url)
        try:
            self._client: Redis = Redis.from_url(
                url,
                driver_info=_DRIVER,
                password=password,  # one that is in the URL goes before it
                socket_connect_timeout=_CONNECT_SECONDS,
                socket_timeout=_ANSWER_SECONDS,
                retry=Retry(ExponentialBackoff(_LONGEST_PAUSE, _FIRST_PAUSE), _RETRIES),
            )
            # Tells what redis-py would say of the URL only when it connects.
            self._client.connection_pool.make_connection()  # type: ignore[no-untyped-call]
        except TypeError as error:
            unknown = str(error).rpartition(" ")[2]
            raise UsageError(
                f"target {self.name}: redis-py knows no setting {unknown}, which the URL has "
                "behind its ?"
            ) from error
        except ValueError as error:
            raise UsageError(
                f"target {self.name}: {error}; write redis://HOST:PORT/DB, and what is odd in a "
                "password per cent-encoded, or the password with --password-env"
            ) from error
        if not url.startswith("unix:") and not _DATABASE.fullmatch(urlsplit(url).path):
            raise UsageError(f"target {self.name}: the database behind the port is a number")
        names = ("BEGIN", "WRITE", "CARRY", "SWITCH", "DISCARD", "PRUNE", "ROLLBACK")
        self._scripts = {
            name: self._client.register_script(getattr(scripts, name)) for name in names
        }
        self._begun: Begun | None = None
        self._position = -1
        self._entry_bytes = 0
        self._current: Generation | None = None
        self._state = State(None, None, (), {})

    async def current(self) -> Generation | None:
        """See `Target`."""
        number = (await self._read()).current
        self._current = None if number is None else self._state.generation(number)
        return self._current

    async def ready(self) -> Generation | None:
        """See `Target`; a server of a version that lacks what is needed, or that only copies."""
        with self._errors():
            info = await self._client.info()
        version = tuple(int(part) for part in str(info["redis_version"]).split(".")[:2])
        if version < _OLDEST:
            raise UsageError(f"{self.name} is Redis {info['redis_version']}: 6.2 is needed")
        if info.get("role") == "slave" and info.get("slave_read_only"):
            raise UsageError(f"{self.name} is a read-only replica: name its master")
        return await self.current()

    async def room(self, plan: Plan) -> Room:
        """See `Target`; by the server's own figures and the policy by which it evicts."""
        with self._errors():
            info = await self._client.info()
            key = max((len(self._entry(10**6, key)) for key in plan.keys), default=0)
            self._entry_bytes = entry_bytes(key, plan.value_bytes, has_ttl=plan.has_ttl)
            carried = 0 if plan.replace else await self._carried_bytes(plan)
            needed = plan.entries * self._entry_bytes + carried
        state = self._state
        if state.next is not None:
            written = int(state.infos[state.next].get("written", 0))
            needed = max(0, needed - written * self._entry_bytes)
        remedies = ["raise maxmemory"]
        if plan.keep > 1 and state.older:
            remedies.append("keep fewer generations (--keep 1)")
        if carried:
            remedies.append("drop what the run does not have (--replace)")
        # Generations that are one too many go before anything is written.
        freed = state.stored_bytes(state.older[plan.keep - 1 :])
        refused = refusal(needed, Memory.of(info), freed=freed, remedies=remedies)
        return Room(needed, None if refused is None else f"{self.name}: {refused}")

    async def begin(self, header: Header) -> Begun:
        """See `Target`."""
        with self._errors():
            server = await self._server()
            number, began, position, written = await self._run(
                "BEGIN", header.identity, str(header.scheme), header.source, server
            )
        self._begun = Begun(int(number), int(began) / 1000, int(position), int(written))
        self._position = self._begun.position
        # From here on no other can switch; until here one may have.
        await self.current()
        return self._begun

    async def write(self, entries: Sequence[Entry], position: int) -> int:
        """See `Target`."""
        # In one argument: redis-py takes its time for each.
        batch = b"".join(_packed(*entry) for entry in entries)
        with self._errors():
            written = int(await self._run("WRITE", self._number, self._position, position, batch))
        self._position = position
        return written

    async def carry(self, after: str, *, copy: bool) -> tuple[str, Coverage]:
        """See `Target`; values are copied by the server and never leave it."""
        if self._current is None:
            return "", Coverage(0, 0)
        old = self._current.number
        prefix = self._entry(old, "")
        with self._errors():
            cursor, keys = await self._page(int(after or 0), f"{prefix}*")
            found = Coverage(0, 0)
            if keys:
                names = [key[len(prefix) :] for key in keys]
                live, covered = await self._run("CARRY", self._number, old, int(copy), *names)
                found = Coverage(live, covered)
        return str(cursor) if cursor else "", found

    async def switch(self) -> int:
        """See `Target`; refuses where entries were evicted meanwhile, or lost in a restart."""
        with self._errors():
            told = ("written", "carried", "server")
            written, carried, server = await self._client.hmget(
                self._key("info", self._number), *told
            )
            entries = int(written or 0) + int(carried or 0)
            # While a server runs and evicts nothing, what it has taken is there.
            if server is not None and text_of(server) != await self._server():
                entries = await self._count(int(written or 0))
            await self._run("SWITCH", self._number, entries, entries * self._entry_bytes)
        return entries

    async def _server(self) -> str:
        """What changes when a server starts anew or evicts a key."""
        info = await self._client.info("all")
        return f"{info['run_id']} {info['evicted_keys']}"

    async def _count(self, least: int) -> int:
        """The entries of the new generation; drops it where there are fewer than `least`."""
        found = 0
        async for keys in self._pages(self._entry(self._number, "*")):
            found += len(keys)
        if found < least:
            await self.discard()
            raise TargetError(
                f"{self.name}: {least - found:,} of {least:,} entries are gone, evicted for lack "
                "of memory or lost in a restart; readers keep the generation before: raise "
                "maxmemory and publish again"
            )
        return found

    async def discard(self) -> None:
        """See `Target`."""
        with self._errors():
            await self._run("DISCARD", self._number)
            await self._sweep()

    async def prune(self, keep: int) -> None:
        """See `Target`."""
        with self._errors():
            await self._run("PRUNE", keep)
            await self._sweep()

    async def previous(self) -> Generation:
        """See `Target`."""
        await self.current()
        older = self._state.older
        return one_before(self.name, self._state.generation(older[0]) if older else None)

    async def rollback(self) -> Generation:
        """See `Target`."""
        before = await self.previous()
        assert self._current is not None
        with self._errors():
            await self._run("ROLLBACK", self._current.number)
        return await self.current() or before

    async def close(self) -> None:
        """See `Target`."""
        await self._client.aclose()

    @property
    def _number(self) -> int:
        assert self._begun is not None, "begin comes first"
        return self._begun.number

    def _key(self, *parts: object) -> str:
        return ":".join(map(str, (self._namespace, *parts)))

    def _entry(self, number: int, key: str) -> str:
        return self._key("gen", number, key)

    async def _run(self, name: str, *arguments: str | bytes | int) -> Any:
        return await self._scripts[name](args=[self._namespace, *arguments])

    async def _read(self) -> State:
        with self._errors():
            self._state = await read_state(self._client, self._namespace, self.name)
        return self._state

    async def _carried_bytes(self, plan: Plan) -> int:
        """What the current generation has and the run does not, judged by a sample of keys."""
        if (current := self._current) is None or not current.entries:
            return 0
        known = 0
        for key in plan.keys:
            known += await self._client.exists(self._entry(current.number, key))
        share = known / max(1, len(plan.keys))
        left = max(0.0, current.entries - share * plan.entries)
        return round(left * self._state.stored_bytes([current.number]) / current.entries)

    async def _page(self, cursor: int, pattern: str) -> tuple[int, list[bytes]]:
        found: Any = await self._client.scan(cursor, match=pattern, count=_PAGE)
        return found[0], found[1]

    async def _pages(self, pattern: str) -> AsyncIterator[list[bytes]]:
        cursor = 0
        while True:
            cursor, keys = await self._page(cursor, pattern)
            yield keys
            if not cursor:
                return

    async def _sweep(self) -> None:
        """Remove the entries of all generations that were dropped."""
        gone = await self._client.smembers(self._key("garbage"))
        if not gone:
            return
        prefix = self._entry(0, "")[:-2]
        async for keys in self._pages(f"{prefix}*"):
            old = [key for key in keys if key[len(prefix) :].partition(b":")[0] in gone]
            if old:
                await self._client.unlink(*old)
        await self._client.srem(self._key("garbage"), *gone)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except exceptions.RedisError as error:
            raise meaning(error, self.name, has_begun=self._begun is not None) from error


def _packed(key: str, value: bytes, expires: float | None) -> bytes:
    """An entry as the script WRITE unpacks it; it ends at a whole millisecond, 0 for never."""
    ends = 0 if expires is None else round(expires * 1000)
    name = key.encode()
    return _ENDS_AND_LENGTH.pack(ends, len(name)) + name + _LENGTH.pack(len(value)) + value


def _check_authority(url: str) -> None:
    """Raise UsageError where the file of a CA that a URL names holds no certificate."""
    for name in parse_qs(urlsplit(url).query).get("ssl_ca_certs", ()):
        try:
            ssl.create_default_context(cafile=name)
        except OSError as error:
            raise UsageError(
                f"ssl_ca_certs {quoted(name)} is no file of certificates in PEM ({error})"
            ) from error
