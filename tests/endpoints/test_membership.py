"""Servers that come while a job runs are used, and those that leave are missed by nobody."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import pytest

from batchrank.backends.base import Backend, BackendOptions
from batchrank.backends.openai import OpenAIBackend
from batchrank.calls import ServerInfo
from batchrank.errors import StoppedError
from batchrank.serving.capacity import capacity_of
from batchrank.serving.endpoint import Endpoint
from batchrank.serving.membership import Changed, follow
from tests.endpoints.acting import Acting, Actor, ask, pooled
from tests.waiting import soon


class Coming:
    """Servers that come and leave at a test's word."""

    def __init__(self, acting: Acting) -> None:
        self.acting = acting
        self.stack = AsyncExitStack()
        self._changes: asyncio.Queue[Changed] = asyncio.Queue()

    def comes(self, url: str) -> Backend:
        backend = OpenAIBackend(BackendOptions(url))
        self.stack.push_async_callback(backend.close)
        self._changes.put_nowait(Changed((backend,), ()))
        return backend

    def leaves(self, backend: Backend) -> None:
        self._changes.put_nowait(Changed((), (backend,)))

    async def changes(self) -> AsyncIterator[Changed]:
        while True:
            yield await self._changes.get()

    def limits(self) -> list[int]:
        return [state.limit for state in self.acting.pool.states]


@asynccontextmanager
async def following(url: str) -> AsyncIterator[Coming]:
    async with pooled(url, concurrency=4) as acting:
        coming = Coming(acting)
        reference = await acting.endpoints[0].backend.describe()

        def endpoint_of(backend: Backend, info: ServerInfo) -> Endpoint:
            fixed = partial(capacity_of, fixed=4)
            return Endpoint(backend, info, reference, capacity_of=fixed, clock=acting.clock)

        work = follow(
            acting.pool,
            coming.changes(),
            reference.identity,
            endpoint_of,
            acting.said.append,
            acting.clock,
        )
        acting.pool.watch(work)
        async with coming.stack:
            yield coming


async def ask_many(acting: Acting, count: int = 40) -> None:
    answers = await asyncio.gather(*(ask(acting, f"Rank {n}.") for n in range(count)))
    assert len(answers) == count


async def test_a_server_that_comes_is_used_once_it_is_proved() -> None:
    async with Actor() as one, Actor() as late, following(one.url) as coming:
        late.gate.clear()
        coming.comes(late.url)
        await soon(lambda: len(late.bodies) == 1)
        await ask_many(coming.acting)
        assert late.asked == []
        late.gate.set()
        await soon(lambda: coming.limits() == [4, 4])
        await ask_many(coming.acting)
        assert len(late.asked) == 20


async def test_a_server_of_another_model_is_left_out_and_the_job_goes_on() -> None:
    async with Actor() as one, Actor(model="n") as other, following(one.url) as coming:
        coming.comes(other.url)
        await soon(lambda: coming.acting.said)
        await ask_many(coming.acting)
        assert "not the job's model" in coming.acting.said[0]
        assert other.asked == []


async def test_what_a_server_held_that_leaves_is_asked_elsewhere() -> None:
    async with Actor() as one, Actor() as short, following(one.url) as coming:
        backend = coming.comes(short.url)
        await soon(lambda: coming.limits() == [4, 4])
        short.gate.clear()
        work = asyncio.create_task(ask_many(coming.acting))
        await soon(lambda: len(short.asked) == 4)
        coming.leaves(backend)
        await soon(lambda: coming.limits() == [4, 0])
        short.act = lambda _: None  # its connections break
        short.gate.set()
        await work
        assert [state.health for state in coming.acting.pool.states] == ["well", "lost"]
        assert len(set(short.asked)) == 4


async def test_where_all_have_left_calls_wait_for_others_to_come() -> None:
    async with Actor() as one, Actor() as next_one, following(one.url) as coming:
        coming.leaves(coming.acting.endpoints[0].backend)
        work = asyncio.create_task(ask_many(coming.acting))
        await soon(lambda: coming.acting.pool.waits is not None)
        coming.comes(next_one.url)
        await work
        assert len(next_one.asked) == 40
        assert coming.acting.pool.waits is None


async def test_where_all_have_left_and_none_comes_the_job_stops() -> None:
    async with Actor() as one, following(one.url) as coming:
        coming.leaves(coming.acting.endpoints[0].backend)
        with pytest.raises(StoppedError, match="no model server answered for 900 s"):
            await ask_many(coming.acting)
