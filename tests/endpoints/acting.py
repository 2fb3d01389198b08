"""A model server that a test tells what to do, a clock that runs by itself, and a pool of both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Any, Self

import orjson
from aiohttp import web

from batchrank.backends.base import BackendOptions
from batchrank.backends.openai import OpenAIBackend
from batchrank.backends.transport import Transport
from batchrank.calls import Answer, ChatPrompt, Form
from batchrank.serving.capacity import capacity_of
from batchrank.serving.endpoint import Endpoint
from batchrank.serving.pool import Pool
from batchrank.serving.probe import probe
from tests.backends.servers import CHAT, Reply, raw

__all__ = ["CHAT", "Acting", "Actor", "Clock", "Reply", "ask", "pooled", "prompt", "raw"]


class Clock:
    """Every sleep moves the time on and lets others run; none takes real time."""

    def __init__(self) -> None:
        self.time = 0.0
        self.slept: list[float] = []

    def now(self) -> float:
        """See `batchrank.clock.Clock`."""
        return self.time

    def wall(self) -> float:
        """Midnight, and what was slept since."""
        return datetime(2026, 11, 30).astimezone().timestamp() + self.time

    async def sleep(self, seconds: float) -> None:
        """See `batchrank.clock.Clock`."""
        self.slept.append(seconds)
        self.time += seconds
        await asyncio.sleep(0.001)


Act = Callable[[dict[str, Any]], Reply | None]
"""Given the body of a completion: the reply, None for a connection that is reset."""


def well(_body: dict[str, Any]) -> Reply:
    """Answer as asked."""
    return Reply(CHAT)


class Actor:
    """An OpenAI-compatible server without constraints; `act` and `model` may change at any time."""

    def __init__(self, act: Act = well, model: str = "m") -> None:
        self.act = act
        self.model = model
        self.bodies: list[dict[str, Any]] = []
        """Of completions, as they came."""
        self.gets = 0
        self.url = ""
        self.gate = asyncio.Event()
        """Cleared: completions are not answered."""
        self.gate.set()

    async def handle(self, request: web.BaseRequest) -> web.Response:
        """Serve one request."""
        if request.method == "GET":
            self.gets += 1
            models = {"data": [{"id": self.model}]}
            return _response(Reply(models) if request.path == "/v1/models" else Reply({}, 404))
        body = orjson.loads(await request.read())
        self.bodies.append(body)
        await self.gate.wait()
        reply = self.act(body)
        if reply is None:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        return _response(reply)

    async def __aenter__(self) -> Self:
        self._runner = web.ServerRunner(
            web.Server(self.handle, access_log=None, handler_cancellation=True),
            shutdown_timeout=0.1,
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.gate.set()
        await self._runner.cleanup()

    @property
    def asked(self) -> list[str]:
        """The texts of the prompts that came, trials left out."""
        texts = [body["messages"][0]["content"] for body in self.bodies]
        return [text for text in texts if "hello" not in text]


def _response(reply: Reply) -> web.Response:
    body = reply.body if isinstance(reply.body, str) else orjson.dumps(reply.body).decode()
    return web.Response(status=reply.status, text=body, headers=dict(reply.headers))


def prompt(text: str = "Rank.") -> ChatPrompt:
    """Three documents of which the best two are wanted, as text."""
    return ChatPrompt(text, documents=3, wanted=2, form=Form.TEXT, max_tokens=16)


class Acting:
    """A pool over actors, with what it said."""

    def __init__(self, pool: Pool, endpoints: Sequence[Endpoint], clock: Clock) -> None:
        self.pool = pool
        self.endpoints = endpoints
        self.clock = clock
        self.said: list[str] = []


async def ask(
    acting: Acting, text: str = "Rank.", sent: Callable[[str], None] = lambda url: None
) -> Answer:
    """The pool's answer to one prompt."""
    asked = prompt(text)
    return await acting.pool.answer(asked, acting.pool.encode(asked), (0, 0), sent)


@asynccontextmanager
async def pooled(
    *urls: str,
    concurrency: int | None = None,
    seconds: float = 10.0,
    wait_for_server: float = 900.0,
    equal: bool = False,
    down: Sequence[int] = (),
    background: bool = False,
    transport: Transport | None = None,
) -> AsyncIterator[Acting]:
    """A pool of the servers at `urls`; those at the places `down` are still to be proved.

    They are reached by `transport`, where there is one.
    """
    clock = Clock()
    said: list[str] = []
    async with AsyncExitStack() as stack:
        backends = [
            OpenAIBackend(BackendOptions(url, background=background, transport=transport))
            for url in urls
        ]
        for backend in backends:
            stack.push_async_callback(backend.close)
        reference = await backends[0].describe()
        endpoints = [
            Endpoint(
                backend,
                None if place in down else await backend.describe(),
                reference,
                capacity_of=partial(capacity_of, fixed=concurrency),
                clock=clock,
                equal=equal and place > 0,
                proved=place not in down,
            )
            for place, backend in enumerate(backends)
        ]
        pool = Pool(
            endpoints,
            probe(Form.TEXT),
            timeout=seconds,
            wait_for_server=wait_for_server,
            say=said.append,
            clock=clock,
        )
        stack.push_async_callback(pool.close)
        acting = Acting(pool, endpoints, clock)
        acting.said = said
        yield acting
