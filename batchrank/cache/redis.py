"""Reads cache entries from Redis: pointer and entry in one step, so that both are of one moment."""

from __future__ import annotations

from typing import Any

import redis
import redis.asyncio
from redis.driver_info import DriverInfo

from batchrank.cache.lookup import Reply

_DRIVER = DriverInfo()
"""Made here, since making it reads a file, which would hold up the event loop."""
_READ = """
local generation = redis.call('GET', ARGV[1] .. ':current')
if not generation then return false end
local scheme = redis.call('HGET', ARGV[1] .. ':info:' .. generation, 'scheme')
local value = redis.call('GET', ARGV[1] .. ':gen:' .. generation .. ':' .. ARGV[2])
return {generation, scheme, value}
"""


class RedisReader:
    """Asks a server with the synchronous client; raises redis.RedisError."""

    def __init__(self, url: str, namespace: str, password: str | None) -> None:
        self._client = redis.Redis.from_url(url, password=password)
        self._script = self._client.register_script(_READ)
        self._namespace = namespace

    def read(self, key: str) -> Reply | None:
        """What readers see now."""
        return _reply(self._script(args=[self._namespace, key]))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


class AsyncRedisReader:
    """Asks a server with the asynchronous client; raises redis.RedisError."""

    def __init__(self, url: str, namespace: str, password: str | None) -> None:
        self._client = redis.asyncio.Redis.from_url(url, password=password, driver_info=_DRIVER)
        self._script = self._client.register_script(_READ)
        self._namespace = namespace

    async def read(self, key: str) -> Reply | None:
        """What readers see now."""
        return _reply(await self._script(args=[self._namespace, key]))

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def _reply(raw: Any) -> Reply | None:
    if raw is None:
        return None
    generation, scheme, value = raw
    return Reply(int(generation), (scheme or b"").decode(), value)
