"""Passes calls on to a model server and writes each model call down: time, status, tokens, body.

    python scripts/recording_proxy.py URL CALLS      # prints its address

So two clients are measured by the same clock, and what one sent can be sent again by the other.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import uvloop
from aiohttp import web


class Proxy:
    """Forwards to the server at `url`; `calls` is a JSONL file that is appended to."""

    def __init__(self, url: str, calls: Path) -> None:
        self._url = url
        self._calls = calls.open("a", buffering=1, encoding="utf-8")
        self._session: aiohttp.ClientSession | None = None

    async def session(self, _: web.Application) -> AsyncIterator[None]:
        """Keeps a session for as long as the proxy serves."""
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as self._session:
            yield
        self._calls.close()

    async def forward(self, request: web.Request) -> web.Response:
        """Any request, as it is."""
        assert self._session is not None
        came, body = time.time(), await request.read()
        headers = {"content-type": request.content_type}
        url = self._url + request.path_qs
        async with self._session.request(
            request.method, url, data=body or None, headers=headers
        ) as answer:
            reply = await answer.read()
        if request.method == "POST" and request.path.endswith("/completions"):
            usage = json.loads(reply).get("usage") or {}
            row = {
                "time": came,
                "seconds": time.time() - came,
                "status": answer.status,
                "tokens": usage.get("total_tokens", 0),
                "body": body.decode(),
            }
            self._calls.write(json.dumps(row) + "\n")
        return web.Response(body=reply, status=answer.status, content_type=answer.content_type)


async def main(url: str, calls: str) -> None:
    """Serve until ended."""
    proxy = Proxy(url, Path(calls))
    application = web.Application(client_max_size=2**26)
    application.cleanup_ctx.append(proxy.session)
    application.router.add_route("*", "/{path:.*}", proxy.forward)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    print(f"listening on http://{host}:{port}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:3]))
