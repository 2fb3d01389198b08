"""Leaving servers to people: by the hour, by who waits, by priority."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from batchrank.backends.base import BackendOptions
from batchrank.backends.openai import OpenAIBackend
from batchrank.errors import UsageError
from batchrank.serving.breaker import Breaker
from batchrank.serving.neighbour import give_way, keep_quiet_hours
from batchrank.spec.quiet import parse_quiet_hours
from scripts.judge import JudgeConfig, JudgeServer
from tests.backends.servers import CHAT, Reply, scripted
from tests.endpoints.acting import Actor, ask, pooled, prompt, until


@pytest.mark.parametrize(
    ("hours", "clock", "left"),
    [
        ("08:00-20:00", "07:59", None),
        ("08:00-20:00", "08:00", timedelta(hours=12)),
        ("08:00-20:00", "19:30", timedelta(minutes=30)),
        ("08:00-20:00", "20:00", None),
        ("22:00-06:00", "23:00", timedelta(hours=7)),
        ("22:00-06:00", "05:00", timedelta(hours=1)),
        ("22:00-06:00", "12:00", None),
    ],
)
def test_quiet_hours(hours: str, clock: str, left: timedelta | None) -> None:
    now = datetime.fromisoformat(f"2026-11-30T{clock}:00").replace(tzinfo=UTC)
    assert parse_quiet_hours(hours).left(now) == left


@pytest.mark.parametrize("text", ["8-20", "08:00", "25:00-26:00", "08:61-09:00", "08:00-08:00", ""])
def test_hours_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="08:00-20:00"):
        parse_quiet_hours(text)


async def test_nothing_is_sent_in_quiet_hours_and_all_afterwards() -> None:
    async with Actor() as actor, pooled(actor.url) as acting:
        # The test's clock begins at midnight.
        hours = parse_quiet_hours("00:00-06:00")
        acting.pool.watch(keep_quiet_hours(acting.pool, hours, acting.clock))
        await until(lambda: acting.pool.waits)
        assert acting.pool.waits == "quiet hours until 06:00"
        assert acting.pool.capacity == 0
        call = asyncio.create_task(ask(acting))
        await until(lambda: acting.pool.waits is None)
        assert acting.clock.time >= 6 * 3600
        await call
        assert len(actor.asked) == 1


@pytest.mark.parametrize("kind", ["vllm", "llama.cpp"])
async def test_calls_are_held_back_while_others_wait(kind: str) -> None:
    config = JudgeConfig(kind=kind, slots=2, call_seconds=3600.0)  # type: ignore[arg-type]
    async with JudgeServer(config) as judge:
        other = OpenAIBackend(BackendOptions(judge.url))
        await other.describe()
        people = [asyncio.create_task(other.send(other.encode(prompt()), 60)) for _ in range(5)]
        await until(lambda: judge.stats()["in_flight"] == 5)
        async with pooled(judge.url) as acting:
            endpoint = acting.endpoints[0]
            before = endpoint.limit
            acting.pool.watch(give_way(acting.pool, endpoint, 1, print, acting.clock))
            await until(lambda: endpoint.limit == 0)
            for call in people:
                call.cancel()
            await asyncio.gather(*people, return_exceptions=True)
            await until(lambda: endpoint.limit == before)
        await other.close()


async def test_a_server_that_does_not_tell_who_waits_is_said_once() -> None:
    said: list[str] = []
    async with Actor() as actor, pooled(actor.url) as acting:
        acting.pool.watch(give_way(acting.pool, acting.endpoints[0], 1, said.append, acting.clock))
        await until(lambda: len(acting.clock.slept) > 3)
        assert acting.endpoints[0].limit > 0
    assert len(said) == 1


VLLM = {"data": [{"id": "m", "owned_by": "vllm"}]}
SGLANG = {"model_path": "m"}


@pytest.mark.parametrize(
    ("script", "priority"),
    [
        ({"/v1/models": VLLM}, 1),
        ({"/v1/models": {"data": [{"id": "m"}]}, "/server_info": SGLANG}, -1),
        ({"/v1/models": {"data": [{"id": "m"}]}}, None),
    ],
)
async def test_the_background_has_each_server_s_own_sign(
    script: dict[str, object], priority: int | None
) -> None:
    async with scripted({**script, "/v1/chat/completions": CHAT}) as server:
        backend = OpenAIBackend(BackendOptions(server.url, background=True))
        await backend.describe()
        call = backend.encode(prompt())
        await backend.send(call, 10)
        await backend.close()
    assert b"priority" not in call.body, "it is no part of what an answer is known by"
    sent = server.bodies("/v1/chat/completions")[0]
    assert sent.get("priority") == priority
    assert backend.in_background == (priority is not None)


async def test_a_server_without_priorities_is_asked_without() -> None:
    refusal = Reply({"error": {"message": "Got priority 1 but Priority scheduling is off"}}, 400)
    async with scripted({"/v1/models": VLLM, "/v1/chat/completions": refusal}) as server:
        backend = OpenAIBackend(BackendOptions(server.url, background=True))
        await backend.describe()
        with suppress(Exception):
            await backend.send(backend.encode(prompt()), 10)
        await backend.close()
    assert [body.get("priority") for body in server.bodies("/v1/chat/completions")] == [1, None]
    assert not backend.in_background


def test_a_breaker_opens_on_failures_in_a_row_and_on_a_share_of_refusals() -> None:
    breaker = Breaker()
    for _ in range(20):
        assert not breaker.failed(overloaded=False)
        assert not breaker.failed(overloaded=False)
        breaker.succeeded()
    opened = [breaker.failed(overloaded=False) for _ in range(6)]
    assert opened == [False, False, False, True, False, False]
    breaker.close()
    for _ in range(40):  # one in ten is turned away: that is borne
        assert not breaker.failed(overloaded=True)
        for _ in range(9):
            breaker.succeeded()
    assert any(breaker.failed(overloaded=True) for _ in range(4))
    assert breaker.is_open
