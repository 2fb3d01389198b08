"""Ollama's native routes: one context size, nothing cut in silence, thinking only where it can."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson
import pytest

from batchrank.answers.forms import schema
from batchrank.backends.base import BackendOptions
from batchrank.backends.ollama import OllamaBackend
from batchrank.calls import Form, ServerInfo, Usage
from batchrank.errors import (
    ContextOverflowError,
    FatalServerError,
    OverloadedError,
    ServerError,
    UnavailableError,
)
from tests.backends.servers import Reply, Scripted, prompt, scripted

CHAT = {
    "message": {"role": "assistant", "content": '{"ranking": [2, 1]}'},
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 40,
    "eval_count": 9,
}


def script(*names: str, capabilities: object = None, chat: object = None) -> dict[str, object]:
    trained = {"general.architecture": "qwen3", "qwen3.context_length": 6000}
    return {
        "/api/tags": {"models": [{"name": name, "digest": f"sha-{name}"} for name in names]},
        "/api/show": {"capabilities": capabilities, "model_info": trained},
        "/api/chat": chat or CHAT,
    }


@asynccontextmanager
async def ready(
    server: Scripted, model: str | None = None, num_ctx: int = 4096, *, thinking: bool = False
) -> AsyncIterator[tuple[OllamaBackend, ServerInfo]]:
    options = BackendOptions(server.url, model=model, seed=7, thinking=thinking)
    backend = OllamaBackend(options, num_ctx=num_ctx)
    try:
        yield backend, await backend.describe()
    finally:
        await backend.close()


async def test_what_it_says_of_itself() -> None:
    async with scripted(script("qwen3:latest", "other:1b")) as server:
        async with ready(server, "qwen3") as (_, info):
            pass
        async with ready(server, "qwen3", num_ctx=8192) as (_, wide):
            pass
    forms = (Form.JSON, Form.TEXT)
    assert info == ServerInfo(
        "ollama", "qwen3:latest", "ollama digest=sha-qwen3:latest", forms, 4096
    )
    assert wide.context == 6000, "no more than the model was made for"
    assert server.bodies("/api/show")[0] == {"model": "qwen3:latest"}


async def test_a_model_that_is_not_there_or_not_named() -> None:
    async with scripted(script("a:latest", "b:latest")) as server:
        with pytest.raises(FatalServerError, match="'c'; it has: a:latest, b:latest"):
            await ready(server, "c").__aenter__()
        with pytest.raises(FatalServerError, match="--model; it has: a:latest, b:latest"):
            await ready(server).__aenter__()


async def test_the_request() -> None:
    async with scripted(script("m")) as server, ready(server) as (backend, _):
        text, json = backend.encode(prompt()), backend.encode(prompt(Form.JSON))
    sent = {
        "model": "m",
        "messages": [{"role": "user", "content": "Rank."}],
        "stream": False,
        "truncate": False,
        "keep_alive": "1h",
        "options": {
            "num_ctx": 4096,
            "num_predict": 16,
            "seed": 7,
            "temperature": 0,
            "top_p": 1,
            "top_k": 0,
            "min_p": 0,
            "repeat_penalty": 1,
            "presence_penalty": 0,
            "frequency_penalty": 0,
        },
    }
    assert orjson.loads(text.body) == sent
    assert orjson.loads(json.body) == sent | {"format": schema(3, 2)}
    for form in (Form.GRAMMAR, Form.REGEX):
        with pytest.raises(ValueError, match=f"no {form} form"):
            backend.encode(prompt(form))


@pytest.mark.parametrize("thinking", [False, True])
@pytest.mark.parametrize("capabilities", [["completion"], ["completion", "thinking"], None])
async def test_think_is_sent_only_to_a_model_that_can(
    thinking: bool, capabilities: list[str] | None
) -> None:
    async with (
        scripted(script("m", capabilities=capabilities)) as server,
        ready(server, thinking=thinking) as (backend, _),
    ):
        body = orjson.loads(backend.encode(prompt()).body)
    expected = thinking if capabilities and "thinking" in capabilities else None
    assert body.get("think") is expected


async def test_an_answer() -> None:
    async with scripted(script("m")) as server, ready(server) as (backend, _):
        call = backend.encode(prompt(Form.JSON))
        answer = await backend.send(call, 10)
    assert (answer.text, answer.usage) == ('{"ranking": [2, 1]}', Usage(40, 9))
    assert server.seen[-1].body == call.body


async def test_warming_up_loads_the_model_with_the_context_of_the_job() -> None:
    loaded = {"message": {"content": ""}, "done": True, "done_reason": "load"}
    async with scripted(script("m", chat=loaded)) as server, ready(server) as (backend, _):
        await backend.warm_up(10)
    (sent,) = server.bodies("/api/chat")
    assert sent["messages"] == []
    assert sent["options"] == {"num_ctx": 4096}


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (400, "the input length exceeds the context length", ContextOverflowError),
        (404, 'model "m" not found, try pulling it first', FatalServerError),
        (503, "server busy, please try again.  maximum pending requests exceeded", OverloadedError),
        (500, "llama runner process has terminated: error loading model", UnavailableError),
    ],
)
async def test_errors_keep_their_class(status: int, error: str, kind: type[ServerError]) -> None:
    async with (
        scripted(script("m", chat=Reply({"error": error}, status))) as server,
        ready(server) as (backend, _),
    ):
        with pytest.raises(kind) as caught:
            await backend.send(backend.encode(prompt()), 10)
        with pytest.raises(kind):
            await backend.warm_up(10)
    assert type(caught.value) is kind


@pytest.mark.parametrize("tail", ["", "/", "/v1", "/api/"])
async def test_the_address_of_either_api_will_do(tail: str) -> None:
    options = BackendOptions(f"http://localhost:11434{tail}")
    assert OllamaBackend(options, num_ctx=4096).url == "http://localhost:11434"
