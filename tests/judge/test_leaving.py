"""A judge that is left leaves nothing behind (on the loop that it is run on; asyncio's may)."""

from __future__ import annotations

import asyncio
import socket

import pytest
import uvloop

from scripts.judge import JudgeServer


@pytest.mark.parametrize("turns", range(8))
def test_every_connection_is_closed_however_new_it_is(turns: int) -> None:
    async def said_after_the_end() -> bytes:
        async with JudgeServer() as judge:
            port = int(judge.url.rpartition(":")[2])
            connection = socket.create_connection(("127.0.0.1", port))
            for _ in range(turns):
                await asyncio.sleep(0)
        with connection:
            connection.settimeout(5)
            try:
                return await asyncio.to_thread(connection.recv, 1)
            except ConnectionResetError:
                return b""

    assert uvloop.run(said_after_the_end()) == b""
