"""Each kind of OpenAI-compatible server is recognised and asked in its own fields."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import orjson
import pytest

from batchrank.answers.forms import grammar, regex, schema
from batchrank.backends.base import DROPPED, MOST_CHARACTERS, BackendOptions
from batchrank.backends.openai import OpenAIBackend
from batchrank.calls import Form, ServerInfo, Usage
from batchrank.errors import FatalServerError, UnavailableError, UsageError
from tests.backends.servers import CHAT, Reply, prompt, raw, read_request, scripted

Script = dict[str, object]

LLAMA: Script = {
    "/v1/models": {
        "data": [
            {
                "id": "tiny.gguf",
                "owned_by": "llamacpp",
                "created": 1234567,
                "meta": {"n_vocab": 49152, "n_params": 134515008, "size": 91000000, "n_ctx": 7},
            }
        ]
    },
    "/health": {"status": "ok"},
    "/props": {
        "default_generation_settings": {"n_ctx": 1024},
        "total_slots": 4,
        "model_path": "/models/sub/tiny-q4.gguf",
        "build_info": "b1",
    },
}
VLLM: Script = {
    "/v1/models": {
        "data": [
            {"id": "m", "owned_by": "vllm", "root": "org/m", "max_model_len": 8192, "created": 5}
        ]
    },
}
SGLANG: Script = {
    "/v1/models": {"data": [{"id": "m", "owned_by": "sglang", "max_model_len": 4096}]},
    "/get_server_info": {"model_path": "org/m", "revision": "abc", "quantization": None},
}
LMSTUDIO: Script = {
    "/v1/models": {"data": [{"id": "a"}, {"id": "b"}, {"id": "e"}]},
    # LM Studio answers 200 to what it does not know.
    "/props": {"error": "Unexpected endpoint or method. (GET /props). Returning 200 anyway"},
    "/api/v0/models": {
        "data": [
            {"id": "a", "type": "llm", "state": "not-loaded", "quantization": "Q8_0"},
            {
                "id": "b",
                "type": "llm",
                "state": "loaded",
                "arch": "qwen3",
                "quantization": "Q4_K_M",
                "loaded_context_length": 4096,
                "max_context_length": 32768,
            },
            {"id": "e", "type": "embeddings", "state": "loaded"},
        ]
    },
}
OLLAMA: Script = {
    "/v1/models": {"data": [{"id": "qwen3:latest", "owned_by": "library"}]},
    "/api/tags": {"models": [{"name": "qwen3:latest", "digest": "d1", "modified_at": "now"}]},
}
OTHER: Script = {"/v1/models": {"data": [{"id": "m", "owned_by": "me", "created": 5}]}}
KINDS = {
    "llama.cpp": LLAMA,
    "vllm": VLLM,
    "sglang": SGLANG,
    "lmstudio": LMSTUDIO,
    "ollama": OLLAMA,
    "openai": OTHER,
}


async def describe(script: Mapping[str, object], **options: object) -> ServerInfo:
    async with scripted(script) as server:
        return (await described(server.url, **options))[1]


async def described(
    url: str, model: object = None, *, thinking: object = False
) -> tuple[OpenAIBackend, ServerInfo]:
    assert model is None or isinstance(model, str)
    backend = OpenAIBackend(BackendOptions(url, model=model, thinking=bool(thinking), seed=7))
    try:
        return backend, await backend.describe()
    finally:
        await backend.close()


async def body(kind: str, form: Form, *, thinking: bool = False) -> dict[str, object]:
    async with scripted(KINDS[kind]) as server:
        backend, _ = await described(server.url, thinking=thinking)
        parsed = orjson.loads(backend.encode(prompt(form)).body)
        assert isinstance(parsed, dict)
        return parsed


@pytest.mark.parametrize(
    ("kind", "info"),
    [
        (
            "llama.cpp",
            ServerInfo(
                "llama.cpp",
                "tiny.gguf",
                "llama.cpp file=tiny-q4.gguf n_params=134515008 n_vocab=49152 size=91000000",
                (Form.GRAMMAR, Form.JSON, Form.TEXT),
                1024,
                4,
            ),
        ),
        (
            "vllm",
            ServerInfo(
                "vllm", "m", "vllm id=m root=org/m", (Form.REGEX, Form.JSON, Form.TEXT), 8192
            ),
        ),
        (
            "sglang",
            ServerInfo(
                "sglang",
                "m",
                "sglang model_path=org/m revision=abc",
                (Form.REGEX, Form.JSON, Form.TEXT),
                4096,
            ),
        ),
        (
            "lmstudio",
            ServerInfo(
                "lmstudio",
                "b",
                "lmstudio arch=qwen3 id=b quantization=Q4_K_M",
                (Form.JSON, Form.TEXT),
                4096,
            ),
        ),
        (
            "ollama",
            ServerInfo("ollama", "qwen3:latest", "ollama digest=d1", (Form.JSON, Form.TEXT), 4096),
        ),
        ("openai", ServerInfo("openai", "m", "openai id=m", (Form.JSON, Form.TEXT))),
    ],
)
async def test_each_kind_is_recognised(kind: str, info: ServerInfo) -> None:
    assert await describe(KINDS[kind]) == info


async def test_a_model_is_named_or_the_only_one() -> None:
    assert (await describe(LMSTUDIO, model="a")).model == "a"
    assert (await describe(OLLAMA, model="qwen3")).model == "qwen3:latest"
    with pytest.raises(FatalServerError, match=r"'nope'; it has: tiny\.gguf"):
        await describe(LLAMA, model="nope")
    several = {"/v1/models": {"data": [{"id": "a"}, {"id": "b"}]}}
    with pytest.raises(FatalServerError, match=r"--model; it has: a, b\."):
        await describe(several)
    with pytest.raises(FatalServerError, match="it has: none"):
        await describe({"/v1/models": {"data": []}})


@pytest.mark.parametrize(
    "models",
    [
        Reply("<html>Sign in</html>"),
        Reply("404 page not found", 404),
        Reply({"detail": "Not Found"}, 404),
        Reply({"error": "Unexpected endpoint"}),
        Reply({"error": "no"}, 401),
    ],
)
async def test_what_is_no_such_api_is_fatal(models: Reply) -> None:
    with pytest.raises(FatalServerError):
        await describe({"/v1/models": models})


@pytest.mark.parametrize("path", ["/health", "/props"])
async def test_a_model_that_loads_is_waited_for(path: str) -> None:
    loading = Reply({"error": {"code": 503, "message": "Loading model"}}, 503)
    models = {"data": [{"id": "tiny.gguf", "meta": None}]}
    with pytest.raises(UnavailableError) as caught:
        await describe({**LLAMA, "/v1/models": models, path: loading})
    assert caught.value.loading


async def test_a_probe_that_fails_for_the_moment_does_not_change_the_kind() -> None:
    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if b"GET /v1/models" in await read_request(reader):
            listed = orjson.dumps(OTHER["/v1/models"])
            writer.write(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(listed) + listed)

    async with raw(half) as url:
        with pytest.raises(UnavailableError):
            await described(url)


async def test_identity_leaves_out_what_changes_between_nights() -> None:
    settings = {"n_ctx": 512}
    other = {**LLAMA, "/props": {"default_generation_settings": settings, "total_slots": 1,
             "model_path": "/elsewhere/tiny-q4.gguf", "build_info": "b2"}}  # fmt: skip
    assert (await describe(other)).identity == (await describe(LLAMA)).identity


@pytest.mark.parametrize("tail", ["", "/", "/v1", "/v1/", "//"])
async def test_the_address_with_or_without_v1(tail: str) -> None:
    async with scripted({**OTHER, "/v1/chat/completions": CHAT}) as server:
        described_one, _ = await described(server.url + tail)
        backend = OpenAIBackend(BackendOptions(server.url + tail))
        answer = await backend.send(described_one.encode(prompt()), 10)
        await backend.close()
        assert backend.url == server.url
    assert (answer.text, answer.finish, answer.usage) == ("[2] > [1]", "stop", Usage(30, 5))
    assert answer.seconds > 0


ALWAYS = {
    "messages": [{"role": "user", "content": "Rank."}],
    "max_tokens": 16,
    "stream": False,
    "seed": 7,
    "temperature": 0,
    "top_p": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
}
NO_THINKING = {"chat_template_kwargs": {"enable_thinking": False, "thinking": False}}
OWN: dict[str, dict[str, object]] = {
    "llama.cpp": {"top_k": 0, "min_p": 0, "repeat_penalty": 1, "cache_prompt": True, **NO_THINKING},
    "vllm": {"n": 1, "top_k": -1, "min_p": 0, "repetition_penalty": 1, **NO_THINKING},
    "sglang": {"n": 1, "top_k": -1, "min_p": 0, "repetition_penalty": 1, **NO_THINKING},
    "lmstudio": {"top_k": 0, "repeat_penalty": 1},
    "ollama": {"reasoning_effort": "none"},
    "openai": {"n": 1},
}


@pytest.mark.parametrize("kind", KINDS)
async def test_sampling_is_pinned_in_the_fields_a_kind_takes(kind: str) -> None:
    sent = await body(kind, Form.TEXT)
    assert sent.pop("model") == (await describe(KINDS[kind])).model
    assert sent == ALWAYS | OWN[kind]


@pytest.mark.parametrize(
    ("kind", "form", "constraint"),
    [
        ("llama.cpp", Form.GRAMMAR, {"grammar": grammar(3, 2)}),
        ("vllm", Form.REGEX, {"structured_outputs": {"regex": regex(3, 2)}}),
        ("sglang", Form.REGEX, {"regex": regex(3, 2)}),
    ],
)
async def test_compact_constraints(kind: str, form: Form, constraint: dict[str, object]) -> None:
    sent = await body(kind, form)
    assert {name: sent[name] for name in constraint} == constraint
    assert sent.keys() - (await body(kind, Form.TEXT)).keys() == constraint.keys()


@pytest.mark.parametrize("kind", KINDS)
async def test_json_is_constrained_everywhere(kind: str) -> None:
    sent = await body(kind, Form.JSON)
    named = {"name": "ranking", "strict": True, "schema": schema(3, 2)}
    assert sent["response_format"] == {"type": "json_schema", "json_schema": named}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_form_that_is_not_offered_is_refused(kind: str) -> None:
    offered = (await describe(KINDS[kind])).forms
    async with scripted(KINDS[kind]) as server:
        backend, _ = await described(server.url)
    for form in set(Form) - set(offered):
        with pytest.raises(ValueError, match=f"no {form} form"):
            backend.encode(prompt(form))


@pytest.mark.parametrize("kind", ["llama.cpp", "vllm", "sglang"])
async def test_thinking_is_switched_on_by_the_same_field(kind: str) -> None:
    sent = await body(kind, Form.TEXT, thinking=True)
    assert sent["chat_template_kwargs"] == {"enable_thinking": True, "thinking": True}


async def test_a_grammar_would_forbid_thinking() -> None:
    assert (await describe(LLAMA, thinking=True)).forms == (Form.TEXT,)


async def test_the_same_prompt_gives_the_same_bytes() -> None:
    async with scripted(VLLM) as server:
        (one, _), (two, _) = await described(server.url), await described(server.url)
    assert one.encode(prompt(Form.REGEX)) == two.encode(prompt(Form.REGEX))
    assert one.encode(prompt(Form.REGEX)) != one.encode(prompt(Form.JSON))


def test_the_key_is_in_no_repr_and_not_sent_in_the_clear() -> None:
    options = BackendOptions("http://gpu-box", api_key="secret-key-12345")
    assert "secret" not in repr(options)
    with pytest.raises(UsageError, match="use https"):
        OpenAIBackend(options)


async def test_an_answer_without_end_is_cut() -> None:
    long = "[1] > " * 20_000
    message = {"content": long, "reasoning_content": long}
    reply = {"choices": [{"index": 0, "message": message, "finish_reason": "length"}]}
    async with scripted({**VLLM, "/v1/chat/completions": reply}) as server:
        encoder, _ = await described(server.url)
        backend = OpenAIBackend(BackendOptions(server.url))
        answer = await backend.send(encoder.encode(prompt()), 10)
        await backend.close()
    assert answer.text == answer.reasoning == long[:MOST_CHARACTERS] + DROPPED
