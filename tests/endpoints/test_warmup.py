"""A server's first answer: a model that loads is waited for, a server that hangs is not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from aiohttp import web

from batchrank.backends.base import BackendOptions
from batchrank.backends.openai import OpenAIBackend
from batchrank.calls import Form
from batchrank.errors import UnavailableError
from batchrank.serving.probe import probe
from batchrank.serving.warmup import wake
from tests.endpoints.acting import Actor, Clock, Reply

SILENT, BUSY = 60.0, 300.0
PROPS = {"default_generation_settings": {"n_ctx": 4096}}


class Standing(Clock):
    """Nobody's sleep ends."""

    async def sleep(self, seconds: float) -> None:
        """For ever."""
        await asyncio.Event().wait()


class Kind(Actor):
    """A server of one kind that tells who waits there."""

    def __init__(self, kind: str, waiting: Sequence[int | None] = (None,)) -> None:
        super().__init__()
        self.kind = kind
        self.waiting = list(waiting)
        """How many are told at each look, the last for ever; None: nothing is told."""

    async def handle(self, request: web.BaseRequest) -> web.Response:
        """As such a server discloses itself."""
        match self.kind, request.path:
            case "vllm", "/v1/models":
                return web.json_response({"data": [{"id": "m", "owned_by": "vllm"}]})
            case "sglang", "/server_info":
                return web.json_response({"model_path": "m"})
            case "llama.cpp", "/props":
                return web.json_response(PROPS | {"total_slots": 2})
            case "router", "/props":
                return web.json_response(PROPS)
            case ("vllm" | "sglang", "/metrics") | ("llama.cpp", "/slots"):
                waiting = self.waiting.pop(0) if len(self.waiting) > 1 else self.waiting[0]
                if waiting is not None:
                    return self._told(waiting)
        return await super().handle(request)

    def _told(self, waiting: int) -> web.Response:
        if self.kind == "llama.cpp":
            return web.json_response([{"is_processing": True}] * waiting)
        name = "vllm:num_requests_waiting" if self.kind == "vllm" else "sglang:num_queue_reqs"
        return web.Response(text=f"{name} {waiting}.0")


@dataclass
class Woken:
    """How it ended: what was said, and the time that it took by the clock."""

    said: list[str] = field(default_factory=list)
    clock: Clock = field(default_factory=Clock)
    error: UnavailableError | None = None


async def woken(
    actor: Actor, *, loading: float = 900.0, clock: Clock | None = None, opens: bool = False
) -> Woken:
    """Wake a server; `opens`: it answers once the wait was told."""
    found = Woken(clock=clock or Clock())

    def say(text: str) -> None:
        found.said.append(text)
        if opens:
            actor.gate.set()

    async with actor:
        backend = OpenAIBackend(BackendOptions(actor.url))
        try:
            info = await backend.describe()
            await wake(backend, info, probe(Form.TEXT), loading, BUSY, say, found.clock)
        except UnavailableError as error:
            found.error = error
        finally:
            await backend.close()
    return found


@pytest.mark.parametrize("kind", ["openai", "vllm", "sglang", "llama.cpp", "router"])
@pytest.mark.parametrize("reply", [Reply({"error": "no"}, 400), Reply("", 503), Reply("<html>")])
async def test_whatever_a_server_says_it_is_awake(kind: str, reply: Reply) -> None:
    actor = Kind(kind)
    actor.act = lambda _: reply
    found = await woken(actor, clock=Standing())
    assert (found.error, found.said, len(actor.bodies)) == (None, [], 1)


@pytest.mark.parametrize("kind", ["vllm", "sglang", "llama.cpp"])
@pytest.mark.parametrize("waiting", [None, 0, 1])
async def test_a_server_whose_model_is_loaded_hangs_after_a_minute(
    kind: str, waiting: int | None
) -> None:
    actor = Kind(kind, (waiting,))
    actor.gate.clear()
    found = await woken(actor)
    assert "answered none within 60 s" in str(found.error)
    assert found.clock.time == SILENT
    assert len(found.said) == 1
    assert "waiting up to 60 s" in found.said[0]
    assert len(actor.bodies) == 1, "it is not asked again"


@pytest.mark.parametrize("kind", ["vllm", "sglang", "llama.cpp"])
async def test_where_others_wait_it_is_waited_for(kind: str) -> None:
    actor = Kind(kind, (5, 4, 2, 0))
    actor.gate.clear()
    found = await woken(actor)
    assert "hangs" in str(found.error)
    assert found.clock.time == 4 * SILENT


@pytest.mark.parametrize("kind", ["openai", "router"])
async def test_a_model_that_may_load_when_asked_is_waited_for(kind: str) -> None:
    actor = Kind(kind)
    actor.gate.clear()
    found = await woken(actor, opens=True)
    assert found.error is None
    (said,) = found.said
    assert "up to 900 s" in said
    assert said.endswith("it may load its model")


@pytest.mark.parametrize("kind", ["openai", "router"])
async def test_it_is_not_waited_for_for_ever(kind: str) -> None:
    actor = Kind(kind)
    actor.gate.clear()
    found = await woken(actor, loading=0.02)
    assert found.error is not None
    assert found.error.timed_out
