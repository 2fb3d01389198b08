"""A model server that costs next to nothing: it names the first documents of every prompt.

    python scripts/null_server.py      # prints its address

For benchmarks of what the client itself costs in memory and time. No slots, no delay, no judgement.
`GET /stats` tells how many prompts came that were windows, and when the first did.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from dataclasses import asdict, dataclass
from functools import partial
from typing import cast

import uvloop

_WINDOW = b"[10]"
"""Stands in the windows of a job; the preflight shows fewer documents."""
_WANTED = re.compile(rb"Name the (\d+) best|Rank all (\d+) documents")
_PROPS = b'{"default_generation_settings":{"n_ctx":16384},"total_slots":%d}'
_MODELS = (
    b'{"data":[{"id":"null","owned_by":"llamacpp",'
    b'"meta":{"n_params":1,"size":1,"n_vocab":1,"n_ctx_train":16384}}]}'
)


@dataclass(slots=True)
class Seen:
    """Windows that came, and when the first did, in seconds since 1970."""

    windows: int = 0
    first: float | None = None


def is_window(body: bytes) -> bool:
    """Whether a request is one of a job's windows, not of the preflight."""
    return _WINDOW in body


def reply_to(path: bytes, body: bytes, slots: int = 16) -> bytes | None:
    """The body of the answer to a request for `path`, empty for GET; None: there is no such path.

    `slots` is how many the server says it has.
    """
    if not body:
        known = {b"/v1/models": _MODELS, b"/props": _PROPS % slots, b"/health": b"{}"}
        return known.get(path)
    wanted = _WANTED.search(body)
    count = int(wanted[1] or wanted[2]) if wanted else 1
    named = ",".join(map(str, range(1, count + 1))).encode()
    return (
        b'{"choices":[{"message":{"role":"assistant","content":"' + named + b'"},'
        b'"finish_reason":"stop"}],"usage":{"prompt_tokens":4000,"completion_tokens":8}}'
    )


class NullServer(asyncio.Protocol):
    """HTTP/1.1 with keep-alive, as much of it as one client needs."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to write."""
        # uvloop's transports are transports in all but name.
        self._transport = cast(asyncio.Transport, transport)
        self._data = b""

    def data_received(self, data: bytes) -> None:
        """Answer every request that is complete."""
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            head = self._data[:end].lower()
            length = re.search(rb"content-length: (\d+)", head)
            size = end + 4 + (int(length[1]) if length else 0)
            if len(self._data) < size:
                return
            body = self._data[end + 4 : size]
            path = self._data.split(b" ", 2)[1]
            self._data = self._data[size:]
            self._answer(path, body)

    def _answer(self, path: bytes, body: bytes) -> None:
        if is_window(body):
            self._seen.windows += 1
            self._seen.first = self._seen.first or time.time()
        stats = path == b"/stats"
        found = json.dumps(asdict(self._seen)).encode() if stats else reply_to(path, body)
        status, reply = (b"404 Not Found", b"{}") if found is None else (b"200 OK", found)
        head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        self._transport.write(head % (status, len(reply)) + reply)


async def main() -> None:
    """Serve until ended."""
    server = await asyncio.get_running_loop().create_server(
        partial(NullServer, Seen()), "127.0.0.1", 0
    )
    host, port = server.sockets[0].getsockname()[:2]
    print(f"listening on http://{host}:{port}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
