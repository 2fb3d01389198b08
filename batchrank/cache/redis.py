"""Reads cache entries from Redis: pointer and entry in one step, so that both are of one moment."""

from __future__ import annotations

from typing import Any

import redis
import redis.asyncio
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.driver_info import DriverInfo
from redis.retry import Retry

from batchrank.cache.lookup import Reply
from batchrank.errors import TargetError

_DRIVER = DriverInfo()
"""Made here, since making it reads a file, which would hold up the event loop."""
_READ = """
local generation = redis.call('GET', ARGV[1] .. ':current')
if not generation then return false end
local scheme = redis.call('HGET', ARGV[1] .. ':info:' .. generation, 'scheme')
local value = redis.call('GET', ARGV[1] .. ':gen:' .. generation .. ':' .. ARGV[2])
return {generation, scheme, value}
"""


_SECONDS = 1.0
"""To connect, and to answer: who waits for a ranking rather takes the first stage's."""
_RETRIES = 1
"""At once: a connection from the pool may have been dropped long ago."""


def shown(url: str) -> str:
    """A URL without user and password, also where these should have been encoded."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}"


class RedisReader:
    """Asks a server with the synchronous client."""

    def __init__(self, url: str, namespace: str, password: str | None) -> None:
        self._client = redis.Redis.from_url(
            url,
            password=password,
            socket_connect_timeout=_SECONDS,
            socket_timeout=_SECONDS,
            retry=Retry(NoBackoff(), _RETRIES),
        )
        self._script = self._client.register_script(_READ)
        self._namespace = namespace
        self._name = shown(url)

    def read(self, key: str) -> Reply | None:
        """What readers see now; raises TargetError."""
        try:
            return _reply(self._script(args=[self._namespace, key]))
        except (redis.RedisError, OSError, ValueError) as error:
            raise _failed(self._name, error) from error

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


class AsyncRedisReader:
    """Asks a server with the asynchronous client."""

    def __init__(self, url: str, namespace: str, password: str | None) -> None:
        self._client = redis.asyncio.Redis.from_url(
            url,
            password=password,
            driver_info=_DRIVER,
            socket_connect_timeout=_SECONDS,
            socket_timeout=_SECONDS,
            retry=AsyncRetry(NoBackoff(), _RETRIES),
        )
        self._script = self._client.register_script(_READ)
        self._namespace = namespace
        self._name = shown(url)

    async def read(self, key: str) -> Reply | None:
        """What readers see now; raises TargetError."""
        try:
            return _reply(await self._script(args=[self._namespace, key]))
        except (redis.RedisError, OSError, ValueError) as error:
            raise _failed(self._name, error) from error

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def _failed(name: str, error: Exception) -> TargetError:
    return TargetError(f"{name} can't be read: {error}")


def _reply(raw: Any) -> Reply | None:
    if raw is None:
        return None
    generation, scheme, value = raw
    return Reply(int(generation), (scheme or b"").decode(), value)
