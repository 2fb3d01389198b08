"""One attempt a call, over real sockets: every way to fail is a typed error."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import struct
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from batchrank.backends import http as http_module
from batchrank.backends.http import Http, retry_after
from batchrank.errors import (
    BadResponseError,
    FatalServerError,
    OverloadedError,
    ServerError,
    UnavailableError,
    UsageError,
)
from tests.backends.servers import Reply, http, raw, read_request, scripted
from tests.conftest import missing

KEY = "secret-key-12345"
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


async def post(url: str, seconds: float = 10) -> bytes:
    client = Http(url)
    try:
        return await client.post("/x", b"{}", seconds)
    finally:
        await client.close()


async def test_bytes_go_out_and_come_back_as_they_are() -> None:
    async with scripted({"/base/x": Reply("answer é")}) as server:
        client = Http(f"{server.url}/base/", api_key=KEY)
        assert await client.post("/x", b'{"a":1}', 10) == "answer é".encode()
        await client.close()
    (seen,) = server.seen
    assert (seen.method, seen.body) == ("POST", b'{"a":1}')
    assert seen.headers["Content-Type"] == "application/json"
    assert seen.headers["Authorization"] == f"Bearer {KEY}"


async def test_refused() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(UnavailableError, match=r"can.t be reached: Connection refused"):
            await post(f"http://127.0.0.1:{unused.getsockname()[1]}")


async def test_unknown_host() -> None:
    with pytest.raises(UnavailableError, match=r"nowhere\.invalid"):
        await post("http://nowhere.invalid")


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.05, r"within 0\.05 s\."), (0.000132051, r"in the time that was left\.")],
)
async def test_no_answer_in_time(seconds: float, told: str) -> None:
    async def hang(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        await asyncio.Event().wait()

    async with raw(hang) as url:
        with pytest.raises(UnavailableError, match=f"did not answer {told}"):
            await post(url, seconds)


async def test_an_answer_that_stops_halfway_in_time() -> None:
    async def stall(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(http(b"half", length=8))
        await asyncio.Event().wait()

    async with raw(stall) as url:
        with pytest.raises(UnavailableError, match="did not answer"):
            await post(url, 0.2)


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nContent-Le", http(b"half", length=8)])
@pytest.mark.parametrize("reset", [False, True])
async def test_a_torn_connection_is_not_retried_here(sent: bytes, reset: bool) -> None:
    requests = 0

    async def tear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        requests += 1
        await read_request(reader)
        writer.write(sent)
        await writer.drain()
        if reset:
            linger = struct.pack("ii", 1, 0)
            peer = writer.get_extra_info("socket")
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    async with raw(tear) as url:
        with pytest.raises(UnavailableError, match="connection"):
            await post(url)
    assert requests == 1


async def test_what_is_no_http() -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"SSH-2.0-OpenSSH\r\n\r\n")

    async with raw(babble) as url:
        with pytest.raises(BadResponseError, match="does not speak HTTP"):
            await post(url)


class Stale:
    """Answers `good` requests on the first connection, then drops it as it is used once more."""

    def __init__(self, good: int = 1, then: bytes = b"", fresh: bytes = http(b"fresh")) -> None:
        self.good, self.then, self.fresh = good, then, fresh
        self.connections = 0
        self.requests = 0

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        first = self.connections == 1
        while not reader.at_eof():
            await read_request(reader)
            self.requests += 1
            if first and self.requests > self.good:
                writer.write(self.then)
                return
            answer = http(b"kept") if first else self.fresh
            if not answer:
                return
            writer.write(answer)
            await writer.drain()


async def test_a_stale_connection_is_replaced_at_once() -> None:
    server = Stale()
    async with raw(server.talk) as url:
        client = Http(url)
        assert await client.post("/x", b"{}", 10) == b"kept"
        assert await client.post("/x", b"{}", 10) == b"fresh"
        await client.close()
    assert (server.connections, server.requests) == (2, 3)


async def test_a_stale_connection_is_replaced_only_once() -> None:
    server = Stale(fresh=b"")
    async with raw(server.talk) as url:
        client = Http(url)
        await client.post("/x", b"{}", 10)
        with pytest.raises(UnavailableError):
            await client.post("/x", b"{}", 10)
        await client.close()
    assert (server.connections, server.requests) == (2, 3)


async def test_an_answer_torn_on_a_kept_connection_is_no_stale_connection() -> None:
    server = Stale(then=http(b"half", length=8))
    async with raw(server.talk) as url:
        client = Http(url)
        await client.post("/x", b"{}", 10)
        with pytest.raises(UnavailableError):
            await client.post("/x", b"{}", 10)
        await client.close()
    assert (server.connections, server.requests) == (1, 2)


async def test_a_body_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module, "MAX_BODY", 1000)
    async with scripted({"/x": Reply("a" * 1001), "/y": Reply("a" * 1000)}) as server:
        client = Http(server.url)
        with pytest.raises(BadResponseError, match="larger than 1000 bytes: aaa"):
            await client.post("/x", b"{}", 10)
        assert len(await client.post("/y", b"{}", 10)) == 1000
        await client.close()


async def test_a_redirect_is_not_followed() -> None:
    async with scripted({"/x": Reply("", 307, {"Location": "http://u:p@other/x?t=1"})}) as server:
        with pytest.raises(FatalServerError, match="redirects to http://other: give") as caught:
            await post(server.url)
    assert "u:p" not in str(caught.value)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7.0), (format_datetime(NOON + timedelta(seconds=90), usegmt=True), 90.0)],
)
async def test_the_wait_asked_for_is_passed_on(header: str, seconds: float) -> None:
    async with scripted({"/x": Reply("slow down", 429, {"Retry-After": header})}) as server:
        client = Http(server.url, now=lambda: NOON)
        with pytest.raises(OverloadedError) as caught:
            await client.post("/x", b"{}", 10)
        await client.close()
    assert caught.value.retry_after == seconds


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("soon", None),
        ("-3", None),
        ("nan", None),
        ("0", 0.0),
        ("1.5", 1.5),
        ("Mon, 30 Nov 2026 11:00:00 GMT", 0.0),
        ("Mon, 30 Nov 2026 12:00:30 -0000", 30.0),
    ],
)
def test_retry_after(header: str | None, seconds: float | None) -> None:
    assert retry_after(header, NOON) == seconds


@given(st.text(max_size=40))
def test_any_retry_after_is_a_time_or_none(header: str) -> None:
    seconds = retry_after(header, NOON)
    assert seconds is None or seconds >= 0


@given(st.integers(-(10**8), 10**8), st.integers(-12, 12))
def test_retry_after_is_read_in_its_own_time_zone(seconds: int, hours: int) -> None:
    when = (NOON + timedelta(seconds=seconds)).astimezone(timezone(timedelta(hours=hours)))
    assert retry_after(format_datetime(when), NOON) == max(0, seconds)


async def test_get_reads_one_object() -> None:
    script = {"/a": {"x": 1}, "/list": Reply([1]), "/page": Reply("<html>")}
    async with scripted(script) as server:
        client = Http(server.url)
        assert await client.get("/a") == {"x": 1}
        for path in ("/list", "/page"):
            with pytest.raises(BadResponseError):
                await client.get(path)
        await client.close()


@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 500, 503])
async def test_the_key_is_in_no_error(status: int) -> None:
    told = {"error": f"bad key {KEY}"}
    headers = {"Retry-After": KEY}
    async with scripted({"/x": Reply(told, status, headers)}) as server:
        client = Http(server.url, api_key=KEY)
        with pytest.raises(ServerError) as caught:
            await client.get("/x")
        await client.close()
    assert KEY not in str(caught.value)
    assert KEY not in repr(caught.value)
    assert KEY not in repr(client)


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000",
        "ftp://localhost",
        "http://",
        "http://localhost:port",
        "http://localhost:99999",
        "http://[::1",
        "http://user:password@localhost",
        "http://localhost/?key=password",
        "",
    ],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        Http(url)
    assert "password" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("http://localhost:8000", True),
        ("http://127.9.9.9", True),
        ("http://[::1]:8000", True),
        ("http://gpu.localhost", True),
        ("https://gpu-box:8000", True),
        ("http://gpu-box:8000", False),
        ("http://10.0.0.7", False),
        ("http://localhost.example.org", False),
    ],
)
def test_a_key_travels_encrypted_or_not_at_all(url: str, safe: bool) -> None:
    Http(url)
    Http(url, api_key=KEY, insecure=True)
    if safe:
        Http(url, api_key=KEY)
        return
    with pytest.raises(UsageError, match="use https") as caught:
        Http(url, api_key=KEY)
    assert KEY not in str(caught.value)


def test_a_key_that_would_break_the_header_is_refused() -> None:
    with pytest.raises(UsageError, match="no key has") as caught:
        Http("http://localhost", api_key=f"{KEY}\r\nHost: x")
    assert KEY not in str(caught.value)
    Http("http://localhost", api_key=f"{KEY}\n")


async def test_the_proxies_of_the_environment_are_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    async with scripted({"/x": Reply("direct")}) as server:
        assert await post(server.url) == b"direct"


async def test_a_certificate_of_unknown_origin_is_not_trusted(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        missing("openssl", "install it to make a certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    making = await asyncio.create_subprocess_exec(
        *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"),
        *("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
        *("-keyout", str(key), "-out", str(certificate)),
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert await making.wait() == 0
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    runner = web.AppRunner(web.Application())
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    with pytest.raises(FatalServerError, match="certificate"):
        await post(f"https://127.0.0.1:{runner.addresses[0][1]}")
    await runner.cleanup()
