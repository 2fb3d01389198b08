"""Works on a node: passes requests to the node's own server and hands the answers back in bulk."""

from __future__ import annotations

import asyncio
import os
import string
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

from batchrank.backends.http import Http
from batchrank.backends.transport import Transport
from batchrank.errors import BadResponseError, BatchrankError, UsageError
from batchrank.version import __version__

ENOUGH = 32
"""Requests or replies of one message; more make it no cheaper by the piece."""
_SHARE = 0.05
"""Of the time of a call: how long replies wait for others. A server's queue lasts a quarter."""
_MOST_SECONDS = 0.05
_WEIGHT = 0.1
"""Of a new call in the running mean of their times."""


class Wanted(NamedTuple):
    """A request: `number` tells it from the others, `seconds` are all it may take."""

    number: int
    method: str
    path: str
    body: bytes | None
    seconds: float


class Reply(NamedTuple):
    """What became of the request of that number: the body of its answer, or an error."""

    number: int
    body: bytes | None
    error: BatchrankError | None


class Taken(NamedTuple):
    """Replies that were ready, and who gives them.

    `reconnects` and `weights` are those of the server's `Transport`.
    """

    replies: list[Reply]
    reconnects: int
    process: int
    weights: str | None = None


class Hello(NamedTuple):
    """What a worker says of itself: its batchrank, the server's address, its process."""

    version: str
    url: str
    process: int


def expanded(url: str, environment: Mapping[str, str]) -> str:
    """An address with each `${NAME}` replaced by that variable; UsageError where one is not set."""
    try:
        return string.Template(url).substitute(environment)
    except KeyError as error:
        raise UsageError(
            f"environment variable {error.args[0]} of {url} is not set there"
        ) from None
    except ValueError:
        raise UsageError(f"{url} is no address: variables are written as ${{NAME}}") from None


class ServerSource(Protocol):
    """Gives a worker the server of its node. It is pickled; what it opens stays there."""

    async def open(self) -> Transport:
        """The way to the server; raises BatchrankError where there is none."""


@dataclass(frozen=True, slots=True)
class NodeServer:
    """A server at `base_url`, whose `${NAME}` stand for variables of the node's environment.

    So does the key: `api_key_env` names the variable of the node that holds it.
    """

    base_url: str
    api_key_env: str | None
    insecure: bool

    async def open(self) -> Http:
        """See `ServerSource.open`. Raises UsageError where an address or a key can't be used."""
        root = expanded(self.base_url, os.environ).rstrip("/")
        key = os.environ.get(self.api_key_env) if self.api_key_env else None
        if self.api_key_env and not key:
            raise UsageError(
                "the environment variable that --api-key-env names is not set there: set it on "
                "every node, with the key as its value"
            )
        root = root.removesuffix("/v1").removesuffix("/api")
        return Http(root, api_key=key, insecure=self.insecure)


class Relay:
    """One server, which `source` gives."""

    def __init__(self, source: ServerSource) -> None:
        self._source = source
        self._opening: asyncio.Task[Transport] | None = None
        self._tasks: set[asyncio.Task[bytes]] = set()
        self._replies: list[Reply] = []
        self._some = asyncio.Event()
        self._enough = asyncio.Event()
        self._mean = 0.0

    async def hello(self) -> Hello:
        """Who this is, once its server is there. Raises what opening it raises."""
        server = await self._server()
        return Hello(__version__, server.url, os.getpid())

    async def _server(self) -> Transport:
        if self._opening is None:
            self._opening = asyncio.create_task(self._source.open())
        opening = self._opening
        try:
            return await asyncio.shield(opening)
        except BatchrankError:
            if self._opening is opening:
                self._opening = None  # another time it may be there
            raise

    async def put(self, wanted: Sequence[Wanted]) -> None:
        """Send these requests, at once."""
        for one in wanted:
            task = asyncio.create_task(self._send(one))
            self._tasks.add(task)
            task.add_done_callback(partial(self._replied, one.number))

    async def take(self, process: int) -> Taken:
        """The replies that are ready, once there are some; at once where this is no such `process`.

        They wait for others for a twentieth of what calls take, so that a message holds many.
        """
        if process != os.getpid():
            return Taken([], 0, os.getpid())
        server = await self._server()
        await self._some.wait()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._enough.wait(), min(_MOST_SECONDS, _SHARE * self._mean))
        replies, self._replies = self._replies, []
        self._some.clear()
        self._enough.clear()
        return Taken(replies, server.reconnects, process, server.weights)

    async def close(self) -> None:
        """Drop what is in flight and all connections; where its process is killed that is done."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._opening is not None:
            self._opening.cancel()
            with suppress(asyncio.CancelledError, BatchrankError):
                await (await self._opening).close()

    async def _send(self, wanted: Wanted) -> bytes:
        began = time.perf_counter()
        server = await self._server()
        answer = await server.exchange(*wanted[1:])
        if wanted.method == "POST":
            self._mean += _WEIGHT * (time.perf_counter() - began - self._mean)
        return answer

    def _replied(self, number: int, task: asyncio.Task[bytes]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return  # this process ends
        error = task.exception()
        if error is not None and not isinstance(error, BatchrankError):
            error = BadResponseError(f"{type(error).__name__}: {error}")
        self._replies.append(Reply(number, None if error else task.result(), error))
        self._some.set()
        if len(self._replies) >= ENOUGH:
            self._enough.set()
