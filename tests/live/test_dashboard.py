"""The page of a run as its readers' programs see it: events, queries, tokens, and slow readers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from yarl import URL

from batchrank.cli.views import Tick, views_of
from batchrank.live.dashboard import Dashboard
from batchrank.live.listening import listening
from batchrank.live.page import load_page
from batchrank.progress.snapshot import Snapshot
from batchrank.spec.address import parse_address
from batchrank.store.lock import is_locked
from scripts.judge import JudgeServer
from tests.cli.conftest import Shell
from tests.cli.running import judge, requests
from tests.live.running import runner_of, spec_of
from tests.snapshots import SNAPSHOT
from tests.waiting import PATIENCE

ENDED = replace(SNAPSHOT, state="ended", exit_code=0)


async def known(qid: str) -> list[dict[str, object]]:
    """Knows one query."""
    return [{"qid": qid}] if qid == "q1" else []


@asynccontextmanager
async def served(address: str = "0") -> AsyncIterator[tuple[Dashboard, URL]]:
    at = parse_address(address)
    dashboard = Dashboard(at, known, await asyncio.to_thread(load_page))
    async with listening(dashboard.app, at, "--dashboard-address") as there:
        yield dashboard, URL(dashboard.url(there))


async def events(response: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, Any]]:
    """Name and data of each server-sent event."""
    assert response.content_type == "text/event-stream"
    kind = "message"
    async for line in response.content:
        name, _, value = line.decode().strip().partition(": ")
        if name == "event":
            kind = value
        elif name.rstrip(":") == "data":
            yield kind, orjson.loads(value) if value else None
            kind = "message"


async def test_a_run_is_followed_to_its_end(tmp_path: Path) -> None:
    rows = requests(queries=5, candidates=12)
    seen: list[Snapshot] = []
    said: list[str] = []
    async with judge(rows) as server:
        spec = spec_of(tmp_path, server.url, dashboard=True)
        ticks: list[Tick] = []
        runner = runner_of(spec, rows, seen, lambda snapshot: [one(snapshot) for one in ticks])
        async with views_of(spec, runner.inspect, said.append) as views:
            ticks += views
            (line,) = said
            url = URL(line.removeprefix("dashboard at "))
            assert url.host == "127.0.0.1"
            assert not url.query
            async with aiohttp.ClientSession() as client:
                reading = asyncio.create_task(_read(client, url / "events"))
                await runner.run()
                found = await reading
    assert found[-1] == ("end", None)
    kinds, documents = zip(*found[:-1], strict=True)
    assert set(kinds) == {"message"}
    assert documents[-1] == orjson.loads(orjson.dumps(seen[-1]))
    assert documents[-1]["exit_code"] == 0


async def test_queries_can_be_looked_at_while_the_night_goes_on(tmp_path: Path) -> None:
    """While it publishes and reports too: the run is over then, and the night is not."""
    rows = requests(queries=5, candidates=12)
    seen: list[Snapshot] = []
    async with judge(rows) as server:
        spec = spec_of(tmp_path, server.url)
        runner = runner_of(spec, rows, seen)
        async with AsyncExitStack() as night:
            await runner.run_within(night, goes_on=True)
            runner.progress.state, runner.progress.step = "publishing", "writing: 50%"
            (found,) = await runner.inspect("q1")
            assert found["status"] == "ok"
            assert await asyncio.to_thread(is_locked, spec.store)
            before = seen[-1]
            assert before.exit_code is None
            runner.night_ended(75, ["publish: failed"])
    ended = seen[-1]
    assert (ended.state, ended.exit_code, ended.reasons) == ("ended", 75, ("publish: failed",))
    assert not await asyncio.to_thread(is_locked, spec.store)


async def _read(client: aiohttp.ClientSession, url: URL) -> list[tuple[str, Any]]:
    async with client.get(url) as response:
        return [event async for event in events(response)]


async def test_the_page_comes_whole_and_loads_nothing() -> None:
    page = await asyncio.to_thread(load_page)
    text = page.document.decode()
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "").replace(
        "http://www.w3.org/1999/xhtml", ""
    )
    assert "innerHTML" not in text
    assert len(page.document) < 50_000
    async with served() as (_, url), aiohttp.ClientSession() as client:
        response = await client.get(url)
        assert await response.read() == page.document
        policy = response.headers["Content-Security-Policy"]
        assert policy == page.policy
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Cache-Control"] == "no-store"


async def test_queries_by_qid() -> None:
    async with served() as (dashboard, url), aiohttp.ClientSession() as client:
        response = await client.get((url / "query").with_query(qid="q1"))
        assert await response.json() == [{"qid": "q1"}]
        assert (await client.get(url / "query")).status == 400
        assert (await client.get((url / "query").with_query(qid="q9"))).status == 404
        dashboard.tick(ENDED)
        response = await client.get((url / "query").with_query(qid="q1"))
        assert response.status == 404  # the store is closed by now
        assert "the run has ended" in await response.text()


@pytest.mark.parametrize("path", ["/", "/events", "/query?qid=q1"])
async def test_elsewhere_nothing_is_shown_without_the_token(path: str) -> None:
    async with served("0.0.0.0:0") as (dashboard, printed), aiohttp.ClientSession() as client:
        dashboard.tick(SNAPSHOT)
        token = printed.query["token"]
        assert len(token) >= 32
        assert printed.host == socket.gethostname()
        there = URL(f"http://127.0.0.1:{printed.port}{path}")
        for wrong in ({}, {"token": ""}, {"token": token[:-1]}, {"token": "é"}):
            assert (await client.get(there.update_query(wrong))).status == 403
        async with client.get(there.update_query(token=token)) as response:
            assert response.status == 200


async def test_two_runs_have_two_tokens() -> None:
    async with served("0.0.0.0:0") as (_, one), served("0.0.0.0:0") as (_, other):
        assert one.query["token"] != other.query["token"]


async def test_a_name_that_was_made_to_point_here_is_turned_away() -> None:
    async with served() as (_, url), aiohttp.ClientSession() as client:
        for host, status in (("evil.example", 403), ("localhost", 200), ("127.0.0.1", 200)):
            response = await client.get(url, headers={"Host": f"{host}:{url.port}"})
            assert response.status == status


async def test_a_reader_that_reads_nothing_holds_up_nobody() -> None:
    """The loop goes on, what is kept for the reader is bounded, and the end does not wait."""
    big = replace(SNAPSHOT, reasons=("x" * 1_000_000,))
    async with served() as (dashboard, url), aiohttp.ClientSession() as client:
        _, writer = await asyncio.open_connection(url.host, url.port, limit=1024)
        writer.write(f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{url.port}\r\n\r\n".encode())
        await writer.drain()
        for _ in range(100):
            dashboard.tick(replace(big, seconds=1.0))
            await asyncio.sleep(0)
        reading = asyncio.create_task(_read(client, url / "events"))
        dashboard.tick(ENDED)
        assert (await asyncio.wait_for(reading, PATIENCE))[-1] == ("end", None)
    writer.close()


async def test_a_slow_reader_gets_the_latest_not_all() -> None:
    async with served() as (dashboard, url), aiohttp.ClientSession() as client:
        response = await client.get(url / "events")
        for second in range(1000):
            dashboard.tick(replace(SNAPSHOT, seconds=float(second)))
        dashboard.tick(ENDED)
        found = [event async for event in events(response)]
    assert [kind for kind, _ in found] == ["message", "end"]
    assert found[0][1]["exit_code"] == 0


async def test_readers_are_few() -> None:
    async with served() as (dashboard, url):
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as client:
            open_ones = [await client.get(url / "events") for _ in range(32)]
            assert (await client.get(url / "events")).status == 503
            dashboard.tick(ENDED)
            for response in open_ones:
                assert [kind async for kind, _ in events(response)] == ["message", "end"]
            assert (await client.get(url / "events")).status == 200


def test_a_port_in_use_is_refused_before_anything_is_sent(
    shell: Shell, server: JudgeServer, source: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        refused = shell.run(source, "--dashboard-address", address)
    assert refused.code == 2
    assert f"--dashboard-address {address}: the port is in use; choose another" in refused.err
    assert server.calls == []
    assert not shell.store.exists()
