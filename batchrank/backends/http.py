"""One HTTP endpoint: bytes out, bytes in, every failure a typed error."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from io import BytesIO
from urllib.parse import urlsplit

import aiohttp

from batchrank.backends.failures import failure
from batchrank.backends.loose import excerpt
from batchrank.backends.transport import Gate, Transport, at_once
from batchrank.backends.urls import is_loopback, parse_url
from batchrank.errors import (
    BadResponseError,
    FatalServerError,
    FilesError,
    UnavailableError,
    UsageError,
)

CONNECT_SECONDS = 10.0
"""How long to wait for a connection, whatever the request may take."""
MAX_BODY = 8 * 1024 * 1024
"""The largest body read: an answer is a few hundred bytes, a page gone wrong may be anything."""
_LARGE_BODY = 1024 * 1024
_TELLABLE_SECONDS = 0.01
_SHORTEST_SECRET = 8  # below it stand the "none", "EMPTY" and "x" of servers without keys


@dataclass(slots=True)
class _Attempt:
    """One sending of a request; `reuses` a kept connection, as far as is known."""

    reuses: bool = True


_ATTEMPT: ContextVar[_Attempt] = ContextVar("_ATTEMPT")


class Http(Transport):
    """A connection pool to one server. One attempt a call: retrying is for the layer above.

    The only exception is a kept-alive connection that the server drops as it is reused: that says
    nothing about the server, so the request goes out at once on a fresh connection, once.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        insecure: bool = False,
        gate: Gate = at_once,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Take the server at `url`; no connection is made yet.

        Raises:
            UsageError: the URL is no plain http(s) address, or the key can't be sent safely.
        """
        self.url = url.rstrip("/")
        parts = parse_url(self.url)
        key = api_key.strip() if api_key else ""
        if not (key.isascii() and (key.isprintable() and " " not in key)):
            raise UsageError("The API key holds characters that no key has.")
        if key and parts.scheme == "http" and not (insecure or is_loopback(parts.hostname or "")):
            raise UsageError(
                f"The API key would travel unencrypted to {parts.hostname}: use https, or allow it "
                "with --insecure."
            )
        self._headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "User-Agent": "batchrank",
        }
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._secret = key.encode() if len(key) >= _SHORTEST_SECRET else b""
        self._gate = gate
        self._now = now
        self._reconnects = 0
        self._in_flight = self._most_in_flight = self._connections = 0
        self._kept: aiohttp.ClientSession | None = None
        self._fresh: aiohttp.ClientSession | None = None

    @property
    def reconnects(self) -> int:
        """See `Transport.reconnects`."""
        return self._reconnects

    async def close(self) -> None:
        """See `Transport.close`."""
        for session in (self._kept, self._fresh):
            if session is not None:
                await session.close()

    async def exchange(self, method: str, path: str, body: bytes | None, seconds: float) -> bytes:
        """See `Transport.exchange`."""
        await self._gate()  # before any limit of time begins
        self._in_flight += 1
        self._most_in_flight = max(self._most_in_flight, self._in_flight)
        try:
            return await self._attempt_twice(method, path, body, seconds)
        except aiohttp.ConnectionTimeoutError as error:
            raise UnavailableError(
                f"{self.url} took no connection within {CONNECT_SECONDS:g} s.", unreached=True
            ) from error
        except TimeoutError as error:
            raise UnavailableError(
                f"{self.url} did not answer {_within(seconds)}.", timed_out=True
            ) from error
        except aiohttp.ClientConnectorCertificateError as error:
            raise FatalServerError(
                f"The certificate of {self.url} can't be trusted: {excerpt(str(error))}"
            ) from error
        except aiohttp.ClientConnectorSSLError as error:
            raise UnavailableError(
                f"{self.url} answers with no TLS that can be used "
                f"({excerpt(error.os_error.strerror or str(error.os_error))}): is its address "
                "http://?"
            ) from error
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as error:
            if FilesError.is_behind(error):
                # Not the server's fault: to try again, or elsewhere, would end the same.
                raise FilesError from error
            if isinstance(error, aiohttp.ClientConnectorError):
                raise UnavailableError(
                    f"{self.url} can't be reached: {_reason(error.os_error)}.", unreached=True
                ) from error
            raise UnavailableError(
                f"The connection to {self.url} failed: {excerpt(str(error))}"
            ) from error
        except aiohttp.ClientError as error:
            raise BadResponseError(
                f"{self.url} does not speak HTTP as it should: {excerpt(str(error))}"
            ) from error
        finally:
            self._in_flight -= 1

    async def _attempt_twice(
        self, method: str, path: str, body: bytes | None, seconds: float
    ) -> bytes:
        attempt = _Attempt()
        _ATTEMPT.set(attempt)
        self._kept = self._kept or _session(self._headers, keep=True)
        try:
            return await self._attempt(self._kept, method, path, body, seconds, attempt)
        except (aiohttp.ClientConnectorError, TimeoutError):
            raise
        except aiohttp.ClientConnectionError:
            if not attempt.reuses:
                raise
        self._fresh = self._fresh or _session(self._headers, keep=False)
        return await self._attempt(self._fresh, method, path, body, seconds, attempt)

    async def _attempt(
        self,
        session: aiohttp.ClientSession,
        method: str,
        path: str,
        body: bytes | None,
        seconds: float,
        attempt: _Attempt,
    ) -> bytes:
        async with session.request(
            method,
            self.url + path,
            # aiohttp writes bytes at once, which holds the loop up, and files in pieces.
            data=BytesIO(body) if body is not None and len(body) > _LARGE_BODY else body,
            timeout=_limits(seconds),
            allow_redirects=False,
        ) as response:
            if not attempt.reuses:
                self._note_connection()
            attempt.reuses = False  # it answers: what breaks from here on is no stale connection
            answer = await self._read(response)
            status = response.status
            if status >= 400:
                wait = retry_after(response.headers.get("Retry-After"), self._now())
                raise failure(status, answer, wait)
            if status >= 300:
                target = urlsplit(response.headers.get("Location", ""))
                shown = excerpt(f"{target.scheme}://{target.netloc.rpartition('@')[2]}")
                raise FatalServerError(
                    f"{self.url} redirects to {shown}: give the final address as --base-url."
                )
            return answer

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        body = bytearray()
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > MAX_BODY:
                raise BadResponseError(
                    f"The answer is larger than {MAX_BODY} bytes: {excerpt(bytes(body[:800]))}"
                )
        whole = bytes(body)
        # A server that repeats the key must not carry it into a message or the store.
        return whole.replace(self._secret, b"[API key]") if self._secret else whole

    def _note_connection(self) -> None:
        # More connections than calls at once: one was lost. Without a loss each is used again.
        if self._connections >= self._most_in_flight:
            self._reconnects += 1
        else:
            self._connections += 1


@lru_cache(maxsize=8)
def _limits(seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS)


def _session(headers: Mapping[str, str], *, keep: bool) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=not keep, socket_factory=_socket),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=headers,
    )


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """A socket as aiohttp makes it, and a note: the attempt found no connection to use again.

    aiohttp's tracing tells so too, at a tenth of the time that a request takes.
    """
    _ATTEMPT.get().reuses = False
    family, kind, protocol, *_ = address
    return socket.socket(family, kind, protocol)


def retry_after(header: str | None, now: datetime) -> float | None:
    """Seconds to wait by a Retry-After header (seconds or HTTP date); None where it says none.

    RFC 9110, 10.2.3.
    """
    if header is None:
        return None
    if re.fullmatch(r"\s*\d{1,9}(?:\.\d{1,9})?\s*", header):
        return float(header)
    try:
        when = parsedate_to_datetime(header)
    except (ValueError, OverflowError):
        return None
    aware = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (aware - now).total_seconds())


def _within(seconds: float) -> str:
    """The time that a call had; what was left of another limit may be next to none."""
    return (
        f"within {seconds:.3g} s" if seconds >= _TELLABLE_SECONDS else "in the time that was left"
    )


def _reason(error: OSError) -> str:
    """Why there is no connection, without the address, which the error repeats."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return excerpt(error.strerror or str(error))
