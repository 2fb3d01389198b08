"""Requests to a node's server travel in messages of many, and a worker may be lost and come back.

The workers are in this process, and what goes to them and back is pickled as Ray would.
"""

from __future__ import annotations

import asyncio
import os
import pickle
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from batchrank.backends.base import BackendOptions
from batchrank.backends.http import Http
from batchrank.backends.openai import OpenAIBackend
from batchrank.backends.transport import at_once
from batchrank.distributed.relay import (
    ENOUGH,
    Hello,
    NodeServer,
    Relay,
    ServerSource,
    Taken,
    Wanted,
    expanded,
)
from batchrank.distributed.transport import NodeTransport
from batchrank.errors import NoServerError, RefusedError, UnavailableError, UsageError
from tests.endpoints.acting import CHAT, Actor, Reply
from tests.waiting import PATIENCE, soon

BODY = b'{"messages": [{"content": "Rank."}]}'


class Here:
    """A `Worker` whose process can be ended and started anew."""

    def __init__(
        self, source: ServerSource | str, key: str | None = None, version: str | None = None
    ) -> None:
        self._source: ServerSource = (
            NodeServer(source, key, insecure=False) if isinstance(source, str) else source
        )
        self._version = version
        self._relays: list[Relay] = []
        self.messages: list[int] = []
        """The sizes of those that were sent."""
        self.start()

    def start(self) -> None:
        self.process = getattr(self, "process", 0) + 1
        self._relay = Relay(self._source)
        self._relays.append(self._relay)
        self._death: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def die(self) -> None:
        self._death.set_exception(UnavailableError("its worker is lost: dead"))
        self._death.exception()

    async def hello(self) -> Hello:
        self._check()
        hello = await self._relay.hello()
        return hello._replace(process=self.process, version=self._version or hello.version)

    async def put(self, wanted: Sequence[Wanted]) -> None:
        self._check()
        self.messages.append(len(wanted))
        await self._relay.put(pickle.loads(pickle.dumps(wanted)))

    async def take(self, process: int) -> Taken:
        self._check()
        if process != self.process:
            return Taken([], 0, self.process)
        taking = asyncio.ensure_future(self._relay.take(os.getpid()))
        await asyncio.wait((taking, self._death), return_when=asyncio.FIRST_COMPLETED)
        if self._death.done():
            taking.cancel()
            self._check()
        taken: Taken = pickle.loads(pickle.dumps(await taking))
        return taken._replace(process=process)

    async def close(self) -> None:
        if not self._death.done():
            self.die()
        for relay in self._relays:
            await relay.close()

    def _check(self) -> None:
        if self._death.done():
            raise UnavailableError("its worker is lost: dead", unreached=True)


@asynccontextmanager
async def reached(*workers: Here) -> AsyncIterator[NodeTransport]:
    transport = NodeTransport("node 7", workers, at_once)
    await transport.start()
    try:
        yield transport
    finally:
        await transport.close()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("batchrank.distributed.transport._PAUSE_SECONDS", 0.0)


async def post(transport: NodeTransport) -> bytes:
    return await transport.post("/v1/chat/completions", BODY, 10)


async def test_answers_and_errors_arrive_as_over_http() -> None:
    async with Actor() as actor, reached(Here(f"{actor.url}/v1")) as transport:
        assert transport.url == f"{actor.url} on node 7"
        assert b"[2] > [1]" in await post(transport)
        assert (await transport.get("/v1/models"))["data"] == [{"id": "m"}]
        assert '"id"' in await transport.get_text("/v1/models")
        actor.act = lambda _: Reply({"error": "busy"}, 503, {"Retry-After": "7"})
        with pytest.raises(UnavailableError) as busy:
            await post(transport)
        assert busy.value.retry_after == 7
        actor.act = lambda _: Reply({"error": "no"}, 400)
        with pytest.raises(RefusedError):
            await post(transport)
        actor.act = lambda _: None
        with pytest.raises(UnavailableError):
            await post(transport)


async def test_what_is_ready_together_is_one_message() -> None:
    async with Actor() as actor:
        one, other = Here(actor.url), Here(actor.url)
        async with reached(one, other) as transport:
            answers = await asyncio.gather(*(post(transport) for _ in range(200)))
    assert len(answers) == len(actor.bodies) == 200
    assert sum(one.messages) == sum(other.messages) == 100
    for worker in (one, other):
        assert max(worker.messages) == ENOUGH
        assert len(worker.messages) == -(-100 // ENOUGH)


async def test_what_a_lost_worker_held_is_given_back_and_it_is_used_again_later() -> None:
    async with Actor() as actor:
        worker = Here(actor.url)
        async with reached(worker) as transport:
            actor.gate.clear()
            calls = [asyncio.create_task(post(transport)) for _ in range(5)]
            await soon(lambda: len(actor.bodies) == 5)
            worker.die()
            for outcome in await asyncio.gather(*calls, return_exceptions=True):
                assert isinstance(outcome, UnavailableError)
                assert outcome.unreached
            with pytest.raises(UnavailableError, match="lost"):
                await post(transport)
            seen = transport.reconnects
            worker.start()
            actor.gate.set()
            assert b"[2] > [1]" in await found_again(transport)
            # Behind it may be another server, which has to be asked who it is.
            assert transport.reconnects > seen


async def found_again(transport: NodeTransport) -> bytes:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await post(transport)
            except UnavailableError:
                await asyncio.sleep(0.001)


async def test_a_worker_that_was_started_anew_unnoticed_counts_as_a_new_connection() -> None:
    async with Actor() as actor:
        worker = Here(actor.url)
        async with reached(worker) as transport:
            seen = transport.reconnects
            worker.process += 1
            assert await post(transport)  # by the look that was under way
            await soon(lambda: transport.reconnects > seen)
            assert await found_again(transport)


async def test_a_worker_that_is_lost_leaves_the_work_to_the_others() -> None:
    async with Actor() as actor:
        one, other = Here(actor.url), Here(actor.url)
        async with reached(one, other) as transport:
            one.die()
            await found_again(transport)
            answers = await asyncio.gather(*(post(transport) for _ in range(10)))
    assert answers == [answers[0]] * 10
    assert CHAT["choices"]


async def test_a_node_with_another_batchrank_is_refused() -> None:
    async with Actor() as actor:
        transport = NodeTransport("node 7", [Here(actor.url, version="0.0.1")], at_once)
        with pytest.raises(UnavailableError, match=r"batchrank 0\.0\.1 and this machine"):
            await transport.start()


async def test_a_node_without_the_variables_of_the_job_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for url, key in (("http://127.0.0.1:${NOT_SET}", None), ("http://127.0.0.1:1", "NOT_SET")):
        transport = NodeTransport("node 7", [Here(url, key)], at_once)
        with pytest.raises(UsageError, match=r"NOT_SET|--api-key-env"):
            await transport.start()
    monkeypatch.setenv("NOT_SET", "8000")
    async with reached(Here("http://127.0.0.1:${NOT_SET}/v1")) as transport:
        assert transport.url == "http://127.0.0.1:8000 on node 7"


def test_variables_of_an_address_are_those_of_the_node() -> None:
    assert expanded("http://127.0.0.1:${P}/v1", {"P": "8001"}) == "http://127.0.0.1:8001/v1"
    assert expanded("http://gpu1:8000", {}) == "http://gpu1:8000"
    with pytest.raises(UsageError, match="is no address"):
        expanded("http://127.0.0.1:${", {})


class Hashed(Http):
    """A server whose model's files were hashed."""

    hashed = "gguf sha256:1"

    @property
    def weights(self) -> str:
        return self.hashed


class Loading:
    """A source that has a server at the second try."""

    def __init__(self, url: str) -> None:
        self.server = Hashed(url)
        self.tries = 0

    async def open(self) -> Hashed:
        self.tries += 1
        if self.tries == 1:
            raise NoServerError("llama.cpp can't load m.gguf: out of memory.")
        return self.server


async def test_a_model_that_is_loaded_on_the_node_is_known_by_its_hash_there() -> None:
    async with Actor() as actor:
        source = Loading(actor.url)
        worker = Here(source)
        with pytest.raises(NoServerError, match="out of memory"):
            await worker.hello()
        async with reached(worker) as transport:
            backend = OpenAIBackend(BackendOptions(actor.url, transport=transport))
            assert (await backend.describe()).identity == "gguf sha256:1"
            source.server.hashed = "gguf sha256:2"  # it was exchanged, and loaded again
            assert (await backend.describe()).identity == "gguf sha256:2"
        assert source.tries == 2
