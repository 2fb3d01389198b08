"""A server in the place of Text Embeddings Inference, with its limits and without other routes."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

MOST_TEXTS = 32
MOST_BYTES = 2_000_000
_PLAIN_PAIR = "boils"
"""Stands in the right text of the pair that a reranker is tried with."""


@dataclass
class TeiServer:
    """Its address, and the size of each request for relevances that it was sent, in bytes."""

    url: str = ""
    sizes: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


@asynccontextmanager
async def tei(score: Callable[[str], float]) -> AsyncIterator[TeiServer]:
    """Serve a reranker whose relevance of a text is `score`, `nan` written as it is."""
    server = TeiServer()

    async def info(_: web.Request) -> web.Response:
        return web.json_response({"model_id": "bge", "model_sha": "abc", "model_dtype": "float16"})

    async def rerank(request: web.Request) -> web.Response:
        body = await request.read()
        server.sizes.append(len(body))
        if len(body) > MOST_BYTES:
            return web.Response(status=413, text="Failed to buffer the request body: length limit")
        texts = (await request.json())["texts"]
        if len(texts) > MOST_TEXTS:
            error = f"batch size {len(texts)} > maximum allowed batch size {MOST_TEXTS}"
            return web.json_response({"error": error, "error_type": "Validation"}, status=413)
        server.texts += texts
        scores = [1.0 if _PLAIN_PAIR in text else score(text) for text in texts]
        if any(map(math.isnan, scores)):
            scores = [math.nan] * len(scores)
        rows = [{"index": place, "score": one} for place, one in enumerate(scores)]
        return web.json_response(sorted(rows, key=lambda row: -row["score"]))

    app = web.Application(client_max_size=100 * MOST_BYTES)
    app.router.add_get("/info", info)
    app.router.add_post("/rerank", rerank)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield server
    finally:
        await runner.cleanup()
