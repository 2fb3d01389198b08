"""The judge's HTTP server: routes, time, failures and the record of its calls."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Self

import orjson
from aiohttp import web

from . import dialects
from .config import Fault, JudgeConfig
from .disclosure import pages, utility
from .faults import Faults
from .knowledge import Knowledge
from .latency import PrefixCache, QueueFullError, Slots
from .ledger import Call, Ledger
from .model_calls import Judged, ModelCall, ModelCalls, RefusalError

CLIENT_LEFT = 499
RESET = 0
LARGEST_BODY = 64 * 2**20
HTML = "<html><head><title>502 Bad Gateway</title></head><body>502 Bad Gateway</body></html>"


class JudgeServer:
    """A judge on a loopback port for the time of an `async with`.

    `knowledge` None: gains are a seeded hash of a document's text. `url` has no `/v1`.
    """

    def __init__(
        self,
        config: JudgeConfig | None = None,
        knowledge: Knowledge | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self.config = config or JudgeConfig()
        self.url = ""
        self._address = (host, port)
        self._came: Counter[str] = Counter()
        self._ledger = Ledger(self.config.log)
        self._faults = Faults(self.config)
        self._slots = Slots(self.config)
        self._cache = PrefixCache(self.config.prefix_cache)
        self._pages = pages(self.config, self._slots) | {"/judge/stats": self.stats}
        self._model_calls = ModelCalls(self.config, knowledge).routes()
        self._runner: web.ServerRunner | None = None

    async def __aenter__(self) -> Self:
        self._ledger.open()
        runner = self._runner = web.ServerRunner(
            web.Server(
                self._handle,
                request_factory=_request,
                access_log=None,
                # A client that leaves frees its slot.
                handler_cancellation=True,
            ),
            shutdown_timeout=0.1,
        )
        await runner.setup()
        await web.TCPSite(runner, *self._address, backlog=4096).start()
        host, port = runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        self._ledger.close()

    @property
    def calls(self) -> list[Call]:
        """The model calls in the order in which they ended."""
        return self._ledger.calls

    @property
    def unknown(self) -> int:
        """How many shown documents fitted no known text, or several with different gains."""
        return self._ledger.unknown

    def stats(self) -> dict[str, Any]:
        """What `GET /judge/stats` answers: the ledger's counts and how long slots were busy."""
        return self._ledger.stats() | {
            "busy_seconds": self._slots.busy_seconds,
            "slots": self.config.slots,
            "in_flight": self._slots.busy + self._slots.waiting,
            "max_in_flight": self._slots.max_in_flight,
        }

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        response = await self._respond(request, path)
        self._ledger.served[f"{request.method} {path} {response.status}"] += 1
        return response

    async def _respond(self, request: web.BaseRequest, path: str) -> web.Response:
        kind, key = self.config.kind, self.config.api_key
        if key is not None and request.headers.get("Authorization") != f"Bearer {key}":
            return _json(dialects.error(kind, 401, "Incorrect API key provided"), 401)
        if request.method == "GET" and path in self._pages:
            page = self._pages[path]()
            return web.Response(text=page) if isinstance(page, str) else _json(page)
        if request.method == "POST":
            if path in self._model_calls:
                return await self._model_call(request, self._model_calls[path])
            return self._utility(path, await request.read())
        return self._not_found(path)

    async def _model_call(self, request: web.BaseRequest, call: ModelCall) -> web.Response:
        came = time.time()
        body = await request.read()
        digest = blake2b(body, digest_size=8).hexdigest()
        status, judged = CLIENT_LEFT, None
        try:
            if fault := self._faults.next(digest):
                response = await self._fail(request, fault)
                status = RESET if fault in ("reset", "hang") else response.status
                return response
            try:
                judged = call(_payload(body), self._drawn_by(digest))
                response = web.Response(
                    body=await self._take_time(judged, digest), content_type="application/json"
                )
            except RefusalError as refusal:
                response = _json(refusal.body, refusal.status)
            except QueueFullError:
                busy = dialects.error(self.config.kind, 503, "server busy, please try again")
                response = self._overloaded(busy, 503)
            status = response.status
            return response
        finally:
            took = time.time() - came
            self._ledger.record(Call(came, took, digest, status, judged and judged.purpose))

    def _drawn_by(self, digest: str) -> str:
        """What noise and malformed answers are drawn by."""
        if self.config.noise_by != "attempt":
            return digest
        self._came[digest] += 1
        return f"{digest} {self._came[digest]}"

    async def _take_time(self, judged: Judged, digest: str) -> bytes:
        cached, seconds = 0, 0.0

        def work() -> float:
            nonlocal cached, seconds
            cached = self._cache.cached(judged.prompt)
            seconds = self._slots.seconds(
                judged.prompt_tokens - cached, judged.completion_tokens, digest
            )
            return seconds

        await self._slots.hold(work)
        self._ledger.tokens.update(
            prompt=judged.prompt_tokens, cached=cached, completion=judged.completion_tokens
        )
        self._ledger.unknown += judged.unknown
        return judged.write(seconds, cached)

    async def _fail(self, request: web.BaseRequest, fault: Fault) -> web.Response:
        kind = self.config.kind
        if fault == "hang":
            await asyncio.sleep(self.config.hang_seconds)
        if fault in ("hang", "reset"):
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        if fault == "html":
            return web.Response(text=HTML, status=502, content_type="text/html")
        if fault == "error-200":
            return _json(dialects.error(kind, 500, "Internal server error"))
        status = int(fault)
        if status == 500:
            return _json(dialects.error(kind, status, "Internal server error"), status)
        return self._overloaded(dialects.error(kind, status, "too many requests"), status)

    def _overloaded(self, body: dialects.Body, status: int) -> web.Response:
        response = _json(body, status)
        response.headers["Retry-After"] = f"{self.config.retry_after:g}"
        return response

    def _utility(self, path: str, body: bytes) -> web.Response:
        """The POST routes that cost no model time."""
        try:
            page = utility(self.config, path, _payload(body))
        except RefusalError as refusal:
            return _json(refusal.body, refusal.status)
        return self._not_found(path) if page is None else _json(page)

    def _not_found(self, path: str) -> web.Response:
        return _json(dialects.error(self.config.kind, 404, f"{path} not found"), 404)


def _request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    """A request whose body may be larger than aiohttp's default of 1 MB."""
    loop = asyncio.get_running_loop()
    return web.BaseRequest(
        message, payload, protocol, writer, task, loop, client_max_size=LARGEST_BODY
    )


def _payload(body: bytes) -> Mapping[str, Any]:
    try:
        payload = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RefusalError(400, {"error": {"code": 400, "message": str(error)}}) from error
    if not isinstance(payload, dict):
        raise RefusalError(400, {"error": {"code": 400, "message": "the body is no JSON object"}})
    return payload


def _json(body: object, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(body), status=status, content_type="application/json")
