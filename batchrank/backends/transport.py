"""What every way of carrying bytes to a model server and back has to offer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from batchrank.backends.loose import Json

GET_SECONDS = 10.0
"""How long a question about the server itself may take."""
Gate = Callable[[], Awaitable[None]]
"""Awaited before anything is sent: returns when it may be, or raises."""


async def at_once() -> None:
    """The gate that is always open."""


class Transport(Protocol):
    """What carries bytes to one server and back: `Http`, or something that has another send."""

    url: str

    @property
    def reconnects(self) -> int:
        """Counts connections made in the place of lost ones: behind each may be another server."""

    async def post(self, path: str, body: bytes, seconds: float) -> bytes:
        """Send `body` to `path`; the body of the answer. `seconds` are all it may take.

        Raises:
            ServerError: anything but a 2xx answer of bearable size; see `batchrank.errors`.
        """

    async def get(self, path: str, seconds: float = GET_SECONDS) -> Json:
        """The JSON object at `path`.

        Raises:
            ServerError: as `post`, and BadResponseError where it is no JSON object.
        """

    async def get_text(self, path: str, seconds: float = GET_SECONDS) -> str:
        """The text at `path`. Raises ServerError as `post`."""

    async def close(self) -> None:
        """Close all connections."""
