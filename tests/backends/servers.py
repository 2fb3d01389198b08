"""Servers on loopback sockets: one that plays scripted replies, one that writes raw bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import orjson
from aiohttp import web

from batchrank.calls import ChatPrompt, Form

CHAT = {
    "choices": [{"index": 0, "message": {"content": "[2] > [1]"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 30, "completion_tokens": 5},
}


@dataclass(frozen=True)
class Reply:
    """What a route answers: JSON, or text where `body` is a string."""

    body: object = field(default_factory=dict)
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """A request that arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Scripted:
    """A running server; routes that are not in the script answer 404."""

    url: str
    port: int
    seen: list[Seen]

    def bodies(self, path: str) -> list[dict[str, object]]:
        """The JSON bodies that arrived at `path`."""
        return [orjson.loads(request.body) for request in self.seen if request.path == path]


@asynccontextmanager
async def scripted(script: Mapping[str, object]) -> AsyncIterator[Scripted]:
    """Serve `script`: path to a Reply, or to the JSON of a 200 reply."""
    seen: list[Seen] = []

    async def handle(request: web.Request) -> web.Response:
        seen.append(Seen(request.method, request.path, request.headers, await request.read()))
        if request.path not in script:
            return web.Response(status=404, text="404: Not Found")
        entry = script[request.path]
        reply = entry if isinstance(entry, Reply) else Reply(entry)
        if isinstance(reply.body, str):
            return web.Response(status=reply.status, text=reply.body, headers=reply.headers)
        return web.Response(
            status=reply.status,
            body=orjson.dumps(reply.body),
            headers={"Content-Type": "application/json", **reply.headers},
        )

    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        yield Scripted(f"http://127.0.0.1:{port}", port, seen)
    finally:
        await runner.cleanup()


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def raw(talk: Talk) -> AsyncIterator[str]:
    """Serve every connection with `talk`; yields the URL. What still talks at the end is ended."""
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await talk(reader, writer)
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """One request's head and body."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        (
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length:")
        ),
        0,
    )
    return head + await reader.readexactly(length)


def http(body: bytes, length: int | None = None) -> bytes:
    """A 200 response that promises `length` bytes, by default those it has."""
    promised = len(body) if length is None else length
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (promised, body)


def prompt(form: Form = Form.TEXT) -> ChatPrompt:
    """A prompt of three documents of which the best two are wanted."""
    return ChatPrompt("Rank.", documents=3, wanted=2, form=form, max_tokens=16)
