"""What every way of carrying bytes to a model server and back has to offer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import Protocol

from batchrank.backends.bodies import read_object
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
    @abstractmethod
    def reconnects(self) -> int:
        """Counts connections made in the place of lost ones: behind each may be another server."""

    @property
    def weights(self) -> str | None:
        """The identity of the model by the hash of its files; None where only the server knows."""
        return None

    @abstractmethod
    async def exchange(self, method: str, path: str, body: bytes | None, seconds: float) -> bytes:
        """Send `body` to `path`; the body of the answer. `seconds` are all it may take.

        Raises:
            ServerError: anything but a 2xx answer of bearable size; see `batchrank.errors`.
        """

    async def post(self, path: str, body: bytes, seconds: float) -> bytes:
        """Send `body` to `path`; the body of the answer. Raises ServerError as `exchange`."""
        return await self.exchange("POST", path, body, seconds)

    async def get(self, path: str, seconds: float = GET_SECONDS) -> Json:
        """The JSON object at `path`.

        Raises:
            ServerError: as `exchange`, and BadResponseError where it is no JSON object.
        """
        return read_object(await self.exchange("GET", path, None, seconds))

    async def get_text(self, path: str) -> str:
        """The text at `path`. Raises ServerError as `exchange`."""
        return (await self.exchange("GET", path, None, GET_SECONDS)).decode(errors="replace")

    @abstractmethod
    async def close(self) -> None:
        """Close all connections."""
