"""Leaving servers to people: by the hour, by who waits, by priority."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from datetime import time as clock_time

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from batchrank.backends.base import BackendOptions
from batchrank.backends.openai import OpenAIBackend
from batchrank.errors import StoppedError, UsageError
from batchrank.running.recorder import Recorder
from batchrank.serving.pool import Pool
from batchrank.serving.quiethours import Curfew
from batchrank.serving.sharing import give_way, keep_quiet_hours
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.quiethours import QuietHours, parse_quiet_hours
from scripts.judge import JudgeConfig, JudgeServer
from tests.backends.servers import CHAT, Reply, scripted
from tests.endpoints.acting import Actor, Clock, ask, pooled, prompt
from tests.waiting import soon


def at(text: str) -> float:
    """A local time on 30 November 2026, or as given in full."""
    return datetime.fromisoformat(text if "T" in text else f"2026-11-30T{text}").timestamp()


@pytest.fixture(params=["UTC", "America/New_York"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The local time, without and with changes of clocks (8 March and 1 November 2026)."""
    name: str = request.param
    monkeypatch.setenv("TZ", name)
    time.tzset()
    yield name
    monkeypatch.undo()
    time.tzset()


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
        ("20:00-24:00", "23:00", timedelta(hours=1)),
        ("20:00-24:00", "00:00", None),
        ("00:00-06:00", "00:00", timedelta(hours=6)),
        ("00:01-00:00", "00:00", None),
    ],
)
def test_quiet_hours(zone: str, hours: str, clock: str, left: timedelta | None) -> None:
    until = parse_quiet_hours(hours).until(at(clock))
    assert (None if until is None else until - at(clock)) == (left and left.total_seconds())


@given(st.integers(1_700_000_000, 1_900_000_000), st.times(), st.times(), st.integers(0, 400_000))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_time_is_counted_alike_both_ways(
    zone: str, now: int, start: clock_time, end: clock_time, ahead: int
) -> None:
    start, end = (one.replace(second=0, microsecond=0) for one in (start, end))
    assume(start != end)
    hours = QuietHours(start, end)
    worked = hours.seconds_between(now, now + ahead)
    assert 0 <= worked <= ahead
    done = hours.after(now, worked)
    assert done <= now + ahead
    assert hours.seconds_between(now, done) == worked
    last = hours.last_moment(now, now + ahead)
    assert hours.seconds_between(last, now + ahead) == 0
    assert hours.until(hours.next_start(now)) is not None
    if (until := hours.until(now)) is not None:
        assert hours.until(until) is None


@pytest.mark.parametrize("zone", ["America/New_York"], indirect=True)
def test_hours_around_a_change_of_clocks(zone: str) -> None:
    nights = parse_quiet_hours("22:00-06:00")
    for evening, long in (("2026-03-07", 7), ("2026-10-31", 9), ("2026-11-10", 8)):
        begun = at(f"{evening}T22:00")
        until = nights.until(begun)
        assert until is not None
        assert until - begun == long * 3600
    # Of a bound that is left out or comes twice, the hours are the longer.
    for hours in ("02:30-03:30", "22:00-02:30"):
        last = at("2026-03-08T03:29") if hours.endswith("03:30") else at("2026-03-08T01:59")
        assert parse_quiet_hours(hours).until(last) is not None
    twice = at("2026-11-01T01:15") + 3600
    assert parse_quiet_hours("22:00-01:30").until(twice) == twice + 15 * 60


@pytest.mark.parametrize("text", ["08:00-08:00", "00:00-24:00", "00:00-00:00"])
def test_a_whole_day_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="nothing could ever be sent"):
        parse_quiet_hours(text)


@pytest.mark.parametrize("text", ["8-20", "08:00", "25:00-26:00", "08:61-09:00", "24:00-08:00", ""])
def test_hours_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="08:00-20:00"):
        parse_quiet_hours(text)


async def test_nothing_is_sent_in_quiet_hours_and_all_afterwards() -> None:
    async with Actor() as actor, pooled(actor.url) as acting:
        # The test's clock begins at midnight.
        hours = parse_quiet_hours("00:00-06:00")
        curfew = Curfew(hours, acting.clock, acting.said.append)
        acting.pool.watch(keep_quiet_hours(acting.pool, curfew))
        await soon(lambda: acting.pool.waits)
        assert acting.pool.waits == "quiet hours until 06:00"
        assert acting.pool.capacity == 0
        call = asyncio.create_task(ask(acting))
        await soon(lambda: acting.pool.waits is None)
        assert acting.clock.time >= 6 * 3600
        await call
        assert len(actor.asked) == 1
        assert acting.said == [
            "quiet hours until 06:00: nothing is sent before",
            "the quiet hours are over",
        ]


async def test_quiet_hours_begin_to_the_second() -> None:
    async with Actor() as actor, pooled(actor.url) as acting:
        hours = parse_quiet_hours("00:01-06:00")
        acting.clock.time = 37.5
        curfew = Curfew(hours, acting.clock, acting.said.append)
        await curfew.begun()
        assert acting.clock.time == 60
        assert curfew.left == 6 * 3600 - 60


async def test_what_would_send_by_itself_waits_too() -> None:
    """Whatever a backend is asked for in quiet hours goes out afterwards."""
    async with Actor() as actor:
        clock = Clock()
        curfew = Curfew(parse_quiet_hours("00:00-06:00"), clock, print)
        sent_at: list[float] = []

        def note(_body: object) -> Reply:
            sent_at.append(clock.time)
            return Reply(CHAT)

        actor.act = note
        backend = OpenAIBackend(BackendOptions(actor.url, gate=curfew.gate))
        await backend.describe()
        assert clock.time == 6 * 3600
        clock.time = 24 * 3600
        await backend.send(backend.encode(prompt()), 1)
        assert sent_at == [30 * 3600]
        clock.time = 48 * 3600
        impatient = OpenAIBackend(BackendOptions(actor.url, gate=curfew.refuse))
        with pytest.raises(StoppedError, match="quiet hours until 06:00"):
            await impatient.describe()
        await impatient.close()
        await backend.close()


def counted_by(pool: Pool) -> tuple[float, float]:
    """What a run has as held back that has seen `pool` once, of how many seconds."""
    recorder = Recorder(JobSpec(), "in.jsonl", None)
    recorder.pool = pool
    recorder.progress.state = "ranking"
    begun = recorder.progress.now
    recorder.update()
    seconds = recorder.progress.now - begun
    recorder.progress.state = "writing"  # nothing waits for a server any more
    recorder.update()
    return recorder.progress.held_back_seconds, seconds


@pytest.mark.parametrize("kind", ["vllm", "llama.cpp"])
async def test_calls_are_held_back_while_others_wait(kind: str) -> None:
    config = JudgeConfig(kind=kind, slots=2, call_seconds=3600.0)  # type: ignore[arg-type]
    async with JudgeServer(config) as judge:
        other = OpenAIBackend(BackendOptions(judge.url))
        await other.describe()
        people = [asyncio.create_task(other.send(other.encode(prompt()), 60)) for _ in range(5)]
        await soon(lambda: judge.stats()["in_flight"] == 5)
        async with pooled(judge.url) as acting:
            endpoint = acting.endpoints[0]
            before = endpoint.limit
            acting.pool.watch(give_way(acting.pool, endpoint, 1, print, acting.clock))
            await soon(lambda: endpoint.limit == 0)
            assert acting.pool.waits == f"held back while others wait at {judge.url}"
            held, seconds = counted_by(acting.pool)
            assert held == seconds > 0
            for call in people:
                call.cancel()
            await asyncio.gather(*people, return_exceptions=True)
            await soon(lambda: endpoint.limit == before)
            assert acting.pool.waits is None
            assert counted_by(acting.pool)[0] == 0
        await other.close()


async def test_a_server_that_does_not_tell_who_waits_is_said_once() -> None:
    said: list[str] = []
    async with Actor() as actor, pooled(actor.url) as acting:
        acting.pool.watch(give_way(acting.pool, acting.endpoints[0], 1, said.append, acting.clock))
        await soon(lambda: len(acting.clock.slept) > 3)
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
