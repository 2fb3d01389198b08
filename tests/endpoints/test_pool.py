"""Several servers: retries, failover, breakers, waiting, and what is no server's fault."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from batchrank.backends.http import Http
from batchrank.errors import (
    BadResponseError,
    ContextOverflowError,
    LostServerError,
    ModelChangedError,
    RefusedError,
    ServerError,
    StoppedError,
    UnavailableError,
)
from batchrank.serving.backoff import MAX_ATTEMPTS
from tests.backends.servers import http, read_request
from tests.endpoints.acting import CHAT, Actor, Reply, ask, pooled, raw
from tests.waiting import soon

BROKEN = Reply({"error": {"message": "Internal server error", "code": 500}}, 500)
BUSY = Reply({"error": "server busy"}, 503)
LOADING = Reply({"error": {"code": 503, "message": "Loading model"}}, 503)


def texts(count: int) -> list[str]:
    return [f"Rank {number}." for number in range(count)]


async def test_a_call_that_fails_goes_to_another_server() -> None:
    async with Actor(lambda _: None) as bad, Actor() as good, pooled(bad.url, good.url) as acting:
        answers = await asyncio.gather(*(ask(acting, text) for text in texts(40)))
        assert {answer.text for answer in answers} == {"[2] > [1]"}
        # Left alone after four: what it had by then, and what took their places; never the rest.
        assert len(bad.asked) <= 20
        assert sorted(set(good.asked)) == sorted(texts(40))
        assert any("left alone" in line and bad.url in line for line in acting.said)


async def test_a_server_that_is_back_is_used_again() -> None:
    async with (
        Actor(lambda _: None) as bad,
        Actor() as good,
        pooled(bad.url, good.url, concurrency=2) as acting,
    ):
        await asyncio.gather(*(ask(acting, text) for text in texts(40)))
        assert not acting.endpoints[0].is_open
        bad.act = good.act
        await soon(lambda: acting.endpoints[0].is_open)
        before = len(bad.asked)
        await asyncio.gather(*(ask(acting, text) for text in texts(40)))
        assert len(bad.asked) > before + 10


async def test_while_no_server_answers_calls_wait_and_then_stop() -> None:
    async with Actor(lambda _: BROKEN) as bad, pooled(bad.url) as acting:
        waits: list[str] = []

        async def watch() -> None:
            await soon(lambda: acting.pool.waits is not None)
            waits.append(str(acting.pool.waits))

        watcher = asyncio.create_task(watch())
        with pytest.raises(LostServerError, match="no model server answered for 900 s"):
            await ask(acting)
        await watcher
        assert "Internal server error" in waits[0]
        assert 900 <= acting.clock.time < 960
        # Bounded: a handful of attempts, then probes that come ever more seldom.
        assert len(bad.asked) <= MAX_ATTEMPTS
        assert len(bad.bodies) < 250


async def test_a_server_that_comes_back_in_time_answers_all_that_waited() -> None:
    async with Actor(lambda _: None) as actor, pooled(actor.url) as acting:
        calls = [asyncio.create_task(ask(acting, text)) for text in texts(20)]
        await soon(lambda: acting.pool.waits is not None)
        actor.act = lambda _: Reply(CHAT)
        answers = await asyncio.gather(*calls)
        assert len(answers) == 20
        assert acting.pool.waits is None


async def test_loading_is_waiting_and_not_failing() -> None:
    left = 30

    def load(_body: dict[str, Any]) -> Reply:
        nonlocal left
        left -= 1
        return LOADING if left > 0 else Reply(CHAT)

    async with Actor(load) as actor, pooled(actor.url) as acting:
        assert (await ask(acting)).text == "[2] > [1]"
        # The window was sent twice, and a tiny prompt asked in between.
        assert len(actor.asked) == 2


async def test_a_request_that_alone_fails_is_not_held_against_the_server() -> None:
    def poison(body: dict[str, Any]) -> Reply:
        return BROKEN if "poison" in body["messages"][0]["content"] else Reply(CHAT)

    async with Actor(poison) as actor, pooled(actor.url) as acting:
        bad = asyncio.create_task(ask(acting, "poison"))
        while not bad.done():
            await ask(acting, "good")
        with pytest.raises(UnavailableError):
            await bad
        assert actor.asked.count("poison") == MAX_ATTEMPTS
        assert acting.endpoints[0].is_open


async def test_a_request_that_takes_servers_down_is_given_up() -> None:
    """Alone, every failure looks like the server's; a probe shows each time that it is not."""

    def poison(body: dict[str, Any]) -> Reply | None:
        return None if "poison" in body["messages"][0]["content"] else Reply(CHAT)

    async with Actor(poison) as actor, pooled(actor.url) as acting:
        with pytest.raises(UnavailableError):
            await ask(acting, "poison")
        # A connection that is dropped as it is reused is no try.
        assert len(actor.asked) <= 2 * MAX_ATTEMPTS


async def test_probes_that_are_answered_do_not_hide_windows_that_are_not() -> None:
    """Each window is tried as often as any, with pauses that grow, and told of twice."""
    page = Reply("<html>Sign in</html>")

    def sign_in(body: dict[str, Any]) -> Reply:
        return Reply(CHAT) if "hello" in body["messages"][0]["content"] else page

    async with Actor(sign_in) as actor, pooled(actor.url, concurrency=4) as acting:
        asked = [asyncio.create_task(ask(acting, text)) for text in texts(12)]
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {BadResponseError}
        assert set(Counter(actor.asked).values()) == {MAX_ATTEMPTS}
        assert sum("left alone" in line for line in acting.said) == 2
        first, *_, last = [seconds for seconds in acting.clock.slept if seconds]
        assert first <= 0.5
        assert 4 <= last <= 8
        actor.act = lambda _: Reply(CHAT)
        await ask(acting)
        assert acting.endpoints[0].breaker.relapses == 0


async def test_another_model_behind_the_address_stops_the_job() -> None:
    async with Actor() as actor, pooled(actor.url, concurrency=1) as acting:
        await ask(acting)

        def swapped(_body: dict[str, Any]) -> Reply | None:
            if actor.model == "m":
                actor.model = "other"
                return None
            return Reply(CHAT)

        actor.act = swapped
        acting.clock.time += 5
        with pytest.raises(StoppedError, match=r"has changed from openai id=m to openai id=other"):
            await ask(acting)
        with pytest.raises(StoppedError, match="has changed"):
            await ask(acting)


async def test_another_model_at_the_first_call_stops_the_job() -> None:
    """On the connection that it was described over, and of a server whose answers name none."""
    async with Actor() as actor, pooled(actor.url) as acting:
        actor.model = "other"
        calls = [asyncio.create_task(ask(acting, text)) for text in texts(8)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} <= {ModelChangedError, StoppedError}
        assert any("from openai id=m to openai id=other" in str(outcome) for outcome in outcomes)


async def test_the_first_call_alone_has_the_server_asked_which_it_is() -> None:
    async with Actor() as actor, pooled(actor.url) as acting:
        described = actor.gets
        for text in texts(8):
            await ask(acting, text)
            acting.clock.time += 5
        assert actor.gets - described == described // 2, "as once at the start"


async def test_another_name_in_an_answer_has_the_server_asked_which_it_is() -> None:
    """On a connection that is kept: what a server calls its model is its own affair, until then."""

    def calling(name: str) -> Callable[[dict[str, Any]], Reply]:
        return lambda _body: Reply({**CHAT, "model": name})

    async with Actor(calling("/models/m.gguf")) as actor, pooled(actor.url) as acting:
        await ask(acting)
        actor.act = calling("alias")
        for _ in range(3):
            await ask(acting)
        actor.act, actor.model = calling("other"), "other"
        with pytest.raises(ModelChangedError, match=r"from openai id=m to openai id=other"):
            await ask(acting)


async def test_another_model_behind_one_of_several_addresses_leaves_that_out() -> None:
    """Whether it changed in mid-run, or the server came up with another than the job's."""
    async with Actor() as good, Actor() as other:
        for down in ((), (1,)):
            other.model = "m"
            async with pooled(good.url, other.url, concurrency=2, down=down) as acting:
                other.model = "other"
                answers = await asyncio.gather(*(ask(acting, text) for text in texts(20)))
                await soon(lambda: acting.endpoints[1].is_lost)
                assert len(answers) == 20
                (told,) = (line for line in acting.said if other.url in line)
                assert "left out" in told
                assert "openai id=m" in told
                assert "openai id=other" in told
                assert ("changed" in told) == (not down)


async def test_a_model_that_is_gone_ends_the_job_or_its_server_alone() -> None:
    gone = Reply({"error": "model 'm' not found"}, 404)
    async with Actor(lambda _: gone) as bad, Actor() as good:
        async with pooled(bad.url) as acting:
            with pytest.raises(LostServerError, match=r"can't go on.*not found"):
                await ask(acting)
        bad.bodies.clear()
        async with pooled(bad.url, good.url, concurrency=2) as acting:
            await asyncio.gather(*(ask(acting, text) for text in texts(20)))
            assert len(bad.bodies) <= 2
            assert any("left out" in line for line in acting.said)


async def test_gets_may_answer_while_completions_hang() -> None:
    async with Actor() as actor, pooled(actor.url, seconds=0.02) as acting:
        actor.gate.clear()
        calls = [asyncio.create_task(ask(acting, text)) for text in texts(8)]
        await soon(lambda: acting.pool.waits is not None)
        # Nobody is fooled by /v1/models: it is probed with completions, one at a time.
        trials = len(actor.bodies) - len(actor.asked)
        while len(actor.bodies) - len(actor.asked) < trials + 2:
            assert acting.pool.capacity == 0
            await asyncio.sleep(0.001)
        actor.gate.set()
        await asyncio.gather(*calls)


class Serial(Http):
    """Of a server that works on one request at a time, though many come together (ollama#14510).

    Time passes by what it works on: whoever sees ten others served first is told that it is late.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.arrived = self._served = 0
        self._turn = asyncio.Lock()

    async def exchange(self, method: str, path: str, body: bytes | None, seconds: float) -> bytes:
        if method == "GET":
            return await super().exchange(method, path, body, seconds)
        self.arrived += 1
        late = self._served + 10
        async with self._turn:
            if self._served >= late:
                raise UnavailableError("late", timed_out=True)
            answer = await super().exchange(method, path, body, seconds)
            self._served += 1
            return answer


async def test_slowness_does_not_become_a_storm_of_retries() -> None:
    async with Actor() as actor:
        serial = Serial(actor.url)
        async with pooled(actor.url, transport=serial) as acting:
            await asyncio.gather(*(ask(acting, text) for text in texts(60)))
            assert acting.endpoints[0].capacity.limit < 16
        # What was in flight beyond the timeout is lost once; then the limit is low enough.
        assert 60 < serial.arrived < 60 + 40


async def test_a_retry_after_is_waited_for_where_no_other_server_can_take_the_call() -> None:
    replies = [Reply({"error": "slow down"}, 429, {"Retry-After": "7"})]

    def act(_body: dict[str, Any]) -> Reply:
        return replies.pop() if replies else Reply(CHAT)

    async with Actor(act) as actor, pooled(actor.url) as acting:
        await ask(acting)
        assert acting.clock.slept[-1] == 7
    replies.append(Reply({"error": "slow down"}, 429, {"Retry-After": "7"}))
    async with Actor(act) as actor, Actor() as other, pooled(actor.url, other.url) as acting:
        await ask(acting)
        assert max(acting.clock.slept) < 1
        assert len(other.asked) == 1


async def test_a_server_that_turns_calls_away_gets_fewer() -> None:
    async with Actor() as actor, pooled(actor.url) as acting:
        actor.act = lambda _: BUSY
        calls = [asyncio.create_task(ask(acting, text)) for text in texts(40)]
        await soon(lambda: not acting.endpoints[0].is_open)
        actor.act = lambda _: Reply(CHAT)
        await asyncio.gather(*calls)
        assert acting.endpoints[0].capacity.generation == 1
        assert acting.said == []


async def test_a_call_turned_away_now_and_then_holds_up_no_other() -> None:
    """It waits as it was asked to; the server is neither left alone nor given fewer calls."""
    came = 0

    def act(_body: dict[str, Any]) -> Reply:
        nonlocal came
        came += 1
        busy = came % 40 in (7, 8, 20)
        return Reply({"error": "busy"}, 429, {"Retry-After": "9"}) if busy else Reply(CHAT)

    async with Actor(act) as actor, pooled(actor.url) as acting:
        await asyncio.gather(*(ask(acting, text) for text in texts(200)))
        assert acting.endpoints[0].capacity.generation == 0
        assert len(actor.asked) == len(actor.bodies), "it was never probed"
        turned_away = len(actor.asked) - 200
        assert acting.clock.slept == [9] * turned_away


async def test_a_server_that_was_down_at_the_start_joins_when_it_is_proved() -> None:
    async with Actor() as one, Actor() as late, pooled(one.url, late.url, down=(1,)) as acting:
        await soon(lambda: acting.endpoints[1].limit > 0)
        await asyncio.gather(*(ask(acting, text) for text in texts(32)))
        assert len(late.asked) == len(one.asked) == 16


async def test_a_late_server_with_another_model_is_left_out_unless_it_is_equal() -> None:
    async with Actor() as one, Actor(model="n") as late:
        async with pooled(one.url, late.url, down=(1,)) as acting:
            await soon(lambda: acting.endpoints[1].is_lost)
            await asyncio.gather(*(ask(acting, text) for text in texts(32)))
            assert not late.bodies
        async with pooled(one.url, late.url, down=(1,), equal=True) as acting:
            await soon(lambda: acting.endpoints[1].limit > 0)
            await asyncio.gather(*(ask(acting, text) for text in texts(32)))
            # Each is asked by its own name for the model.
            assert {body["model"] for body in late.bodies} == {"n"}
            assert {body["model"] for body in one.bodies} == {"m"}


async def test_a_stop_sends_nothing_more_and_lets_calls_in_flight_end() -> None:
    async with Actor() as actor, pooled(actor.url, concurrency=2) as acting:
        actor.gate.clear()
        calls = [asyncio.create_task(ask(acting, text)) for text in texts(5)]
        await soon(lambda: len(actor.bodies) >= 2)
        acting.pool.stop()
        actor.gate.set()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [isinstance(outcome, StoppedError) for outcome in outcomes] == [False] * 2 + [
            True
        ] * 3
        assert len(actor.bodies) == 2


async def test_a_connection_dropped_as_it_is_reused_is_not_the_server_being_down() -> None:
    drops = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal drops
        served = 0
        while True:
            try:
                request = await read_request(reader)
            except asyncio.IncompleteReadError:
                return
            if served >= 2 and request.startswith(b"POST"):
                drops += 1
                return
            body = CHAT if request.startswith(b"POST") else {"data": [{"id": "m"}]}
            writer.write(http(orjson.dumps(body)))
            served += 1

    async with raw(talk) as url, pooled(url) as acting:
        for text in texts(6):
            await ask(acting, text)
            acting.clock.time += 10
        assert drops > 0
        assert acting.clock.slept == []


CASES: dict[str, tuple[type[Exception], int]] = {
    # What the pool raises, and how many requests of the window may have been made.
    "server-001": (ContextOverflowError, 1),
    "server-002": (ContextOverflowError, 1),
    "server-004": (ContextOverflowError, 1),
    "server-006": (ContextOverflowError, 1),
    "server-017": (LostServerError, MAX_ATTEMPTS),
    "server-018": (LostServerError, MAX_ATTEMPTS),
    "server-021": (LostServerError, 1),
    "server-025": (LostServerError, MAX_ATTEMPTS),
    "server-032": (LostServerError, MAX_ATTEMPTS),
    "server-033": (LostServerError, MAX_ATTEMPTS),
    "server-034": (LostServerError, MAX_ATTEMPTS),
    "server-037": (LostServerError, MAX_ATTEMPTS),
    "server-038": (LostServerError, 1),
    "server-039": (LostServerError, 1),
}


@pytest.mark.parametrize("case", CASES)
async def test_every_recorded_failure_ends_within_bounds(shared_data: Path, case: str) -> None:
    """A server that does nothing else: no endless retries, no answer made of an error."""
    lines = (shared_data / "cases.jsonl").read_bytes().splitlines()
    payload = next(row["payload"] for row in map(orjson.loads, lines) if row["id"] == case)
    assert isinstance(payload, Mapping)
    reply = Reply(
        payload.get("body", payload), payload.get("status", 200), payload.get("headers", {})
    )
    kind, most = CASES[case]
    async with Actor(lambda _: reply) as actor, pooled(actor.url) as acting:
        with pytest.raises(kind) as caught:
            await ask(acting)
        assert type(caught.value) is kind
        assert len(actor.asked) <= most
        assert len(actor.bodies) < 250


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply({"error": "no such field"}, 422), RefusedError),
        (Reply({"choices": []}), BadResponseError),
    ],
)
async def test_what_only_one_request_brings_is_that_request_s_error(
    reply: Reply, kind: type[ServerError]
) -> None:
    def act(body: dict[str, Any]) -> Reply:
        return reply if "odd" in body["messages"][0]["content"] else Reply(CHAT)

    async with Actor(act) as actor, pooled(actor.url) as acting:
        odd = asyncio.create_task(ask(acting, "odd"))
        while not odd.done():
            await ask(acting, "usual")
        with pytest.raises(kind):
            await odd
        assert acting.endpoints[0].is_open
