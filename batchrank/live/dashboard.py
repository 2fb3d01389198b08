"""The page that shows a run while it works, served in the run's own loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from hmac import compare_digest
from secrets import token_urlsafe
from socket import gethostname

import orjson
from aiohttp import web

from batchrank.errors import BatchrankError
from batchrank.live.feed import Feed
from batchrank.live.page import Page
from batchrank.progress.snapshot import Snapshot
from batchrank.spec.address import Address

_MOST_READERS = 32
_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - compared with, not listened on
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

Inspect = Callable[[str], Awaitable[list[dict[str, object]]]]
"""qid → what is known of its queries, as `batchrank inspect --json` prints it."""


class Dashboard:
    """`app` serves `page` to whoever can reach `address`; elsewhere than on this machine, only
    to those who have the token that `url` holds."""

    def __init__(self, address: Address, inspect: Inspect, page: Page) -> None:
        self._address = address
        self._inspect = inspect
        self._token = None if address.is_loopback else token_urlsafe(24)
        self._feed = Feed()
        self._readers = 0
        self._page = page
        self.app = web.Application(middlewares=[self._guard])
        self.app.on_response_prepare.append(self._add_headers)
        self.app.router.add_get("/", self._show_page)
        self.app.router.add_get("/events", self._send_events)
        self.app.router.add_get("/query", self._show_query)

    def url(self, at: Address) -> str:
        """Where to open the page, which is served at `at`."""
        host = gethostname() if at.host in _EVERYWHERE else at.host
        token = f"?token={self._token}" if self._token is not None else ""
        return f"http://{Address(host, at.port)}/{token}"

    def tick(self, snapshot: Snapshot) -> None:
        """Show a snapshot."""
        self._feed.publish(snapshot)

    @web.middleware
    async def _guard(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        if self._token is not None:
            given = request.query.get("token", "")
            if not compare_digest(given.encode(), self._token.encode()):
                raise web.HTTPForbidden(text="open the address that the run printed, token and all")
        elif request.url.host not in ("localhost", "127.0.0.1", "::1", self._address.host):
            # A page elsewhere whose name was made to point here (DNS rebinding).
            raise web.HTTPForbidden(text="open the address that the run printed")
        return await handler(request)

    async def _add_headers(self, _: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(_HEADERS)
        response.headers["Content-Security-Policy"] = self._page.policy

    async def _show_page(self, _: web.Request) -> web.Response:
        return web.Response(
            body=self._page.document, headers={"Content-Type": "text/html; charset=utf-8"}
        )

    async def _send_events(self, request: web.Request) -> web.StreamResponse:
        if self._readers >= _MOST_READERS:
            raise web.HTTPServiceUnavailable(text=f"{_MOST_READERS} pages are open; close one")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        self._readers += 1
        try:
            await response.prepare(request)
            # A browser that is gone, or reads so slowly that the run ends before.
            with suppress(ConnectionError):
                async for event in self._feed.events():
                    await response.write(event)
        finally:
            self._readers -= 1
        return response

    async def _show_query(self, request: web.Request) -> web.Response:
        qid = request.query.get("qid")
        if qid is None:
            raise web.HTTPBadRequest(text="name a query: /query?qid=QID")
        try:
            found = [] if self._feed.is_over else await self._inspect(qid)
        except BatchrankError as error:
            raise web.HTTPServiceUnavailable(text=str(error)) from error
        if not found:
            raise web.HTTPNotFound(text="it is not in the store, or the run has ended")
        return web.Response(body=orjson.dumps(found), content_type="application/json")
