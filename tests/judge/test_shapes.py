"""Routes and bodies have the shapes of the servers that the judge imitates."""

from __future__ import annotations

import json
import math
from typing import Any, get_args

import aiohttp
import pytest

from scripts.judge import JudgeConfig, JudgeServer, Knowledge
from scripts.judge.config import Kind

from .asking import FRUIT, KEEP, NAMES, chat, get, post, texts, window


async def pages(kind: Kind, *paths: str) -> list[Any]:
    """What a judge of this kind with 4 slots of 2048 tokens says on these pages."""
    async with JudgeServer(JudgeConfig(kind=kind, slots=4, context=2048), FRUIT) as judge:
        answers = [await get(judge, path) for path in paths]
    assert [status for status, _, _ in answers] == [200] * len(paths)
    return [text if value is None else value for _, text, value in answers]


async def test_llama_cpp() -> None:
    health, props, models, slots = await pages(
        "llama.cpp", "/health", "/props", "/v1/models", "/slots"
    )
    assert health == {"status": "ok"}
    assert props["total_slots"] == 4
    assert props["default_generation_settings"]["n_ctx"] == 2048
    assert props["model_path"].endswith("judge.gguf")
    assert props["build_info"]
    assert {"n_params", "size", "n_vocab", "n_ctx_train"} <= models["data"][0]["meta"].keys()
    assert [slot["n_ctx"] for slot in slots] == [2048] * 4


async def test_vllm() -> None:
    health, version, models, metrics = await pages(
        "vllm", "/health", "/version", "/v1/models", "/metrics"
    )
    assert health == ""
    assert version["version"]
    (model,) = models["data"]
    assert (model["owned_by"], model["root"], model["max_model_len"]) == ("vllm", "judge", 2048)
    assert 'vllm:num_requests_waiting{engine="0",model_name="judge"} 0.0' in metrics


async def test_sglang() -> None:
    models, info = await pages("sglang", "/v1/models", "/get_server_info")
    assert models["data"][0]["owned_by"] == "sglang"
    assert (info["model_path"], info["max_running_requests"]) == ("judge", 4)


async def test_ollama() -> None:
    version, tags, running, models, root = await pages(
        "ollama", "/api/version", "/api/tags", "/api/ps", "/v1/models", "/"
    )
    assert version["version"]
    assert tags["models"][0]["name"] == models["data"][0]["id"] == "judge:latest"
    assert tags["models"][0]["details"]["quantization_level"] == "Q4_K_M"
    assert running == {"models": []}
    assert root == "Ollama is running"


async def test_ollama_loads_shows_and_streams() -> None:
    async with JudgeServer(JudgeConfig(kind="ollama"), FRUIT) as judge:
        _, loaded = await post(judge, {"model": "judge", "messages": []}, "/api/chat")
        assert loaded["done_reason"] == "load"
        _, shown = await post(judge, {"model": "judge"}, "/api/show")
        assert shown["model_info"]["judge.context_length"] == 32768
        _, _, running = await get(judge, "/api/ps")
        assert running["models"][0]["context_length"] == 8192
        async with (
            aiohttp.ClientSession() as session,
            session.post(judge.url + "/api/chat", json=chat(window(texts()))) as response,
        ):
            lines = [json.loads(line) for line in (await response.text()).splitlines()]
    assert [line["done"] for line in lines] == [False, True]
    assert lines[0]["message"]["content"] == "[3] > [5] > [1] > [4] > [2]"
    assert lines[1]["eval_count"] == 20


async def test_openai_has_only_its_models() -> None:
    (models,) = await pages("openai", "/v1/models")
    assert [model["id"] for model in models["data"]] == ["judge"]
    async with JudgeServer() as judge:
        for path in ("/health", "/props", "/version", "/api/tags", "/metrics"):
            assert (await get(judge, path))[0] == 404


@pytest.mark.parametrize("kind", get_args(Kind))
async def test_every_kind_answers_openai_chat(kind: Kind) -> None:
    async with JudgeServer(JudgeConfig(kind=kind), FRUIT) as judge:
        status, body = await post(judge, chat(window(texts())))
    assert status == 200
    assert body["object"] == "chat.completion"
    message = {"role": "assistant", "content": "[3] > [5] > [1] > [4] > [2]"}
    assert body["choices"] == [
        {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    ]


async def test_tokens_are_counted_as_in_usage() -> None:
    messages = chat(window(texts()))["messages"]
    async with JudgeServer(JudgeConfig(kind="llama.cpp"), FRUIT) as judge:
        usage = (await post(judge, chat(window(texts()))))[1]["usage"]["prompt_tokens"]
        tokens = (await post(judge, {"content": window(texts())}, "/tokenize"))[1]["tokens"]
        assert len(tokens) == usage
        _, counted = await post(judge, {"messages": messages}, "/v1/chat/completions/input_tokens")
        assert counted["input_tokens"] == usage
        _, applied = await post(judge, {"messages": messages}, "/apply-template")
        assert applied["prompt"] == window(texts())
    async with JudgeServer(JudgeConfig(kind="vllm")) as judge:
        _, counted = await post(judge, {"messages": messages}, "/tokenize")
        assert (counted["count"], counted["max_model_len"]) == (usage, 8192)


@pytest.mark.parametrize("letters", [True, False])
async def test_the_first_token_has_the_distribution_of_the_scores(letters: bool) -> None:
    prompt = window(texts(), letters=letters)
    async with JudgeServer(JudgeConfig(kind="llama.cpp"), FRUIT) as judge:
        body = chat(prompt, logprobs=True, top_logprobs=30, max_tokens=1)
        (choice,) = (await post(judge, body))[1]["choices"]
    (entry,) = choice["logprobs"]["content"]
    top = entry["top_logprobs"]
    labels = "ABCDE" if letters else "12345"
    assert [NAMES[labels.index(one["token"])] for one in top] == list(KEEP)
    assert choice["message"]["content"] == entry["token"] == top[0]["token"]
    assert choice["finish_reason"] == "length"
    assert math.isclose(sum(math.exp(one["logprob"]) for one in top), 1.0)
    assert math.isclose(top[0]["logprob"] - top[1]["logprob"], 1.0)  # gains 3 and 2
    assert bytes(top[0]["bytes"]).decode() == top[0]["token"]


async def test_log_probabilities_are_limited_as_in_vllm_and_by_what_was_asked() -> None:
    body = chat(window(texts()), logprobs=True)
    async with JudgeServer(JudgeConfig(kind="vllm"), FRUIT) as judge:
        assert (await post(judge, body | {"top_logprobs": 21}))[0] == 400
        (choice,) = (await post(judge, body | {"top_logprobs": 2}))[1]["choices"]
    entries = choice["logprobs"]["content"]
    assert [len(entry["top_logprobs"]) for entry in entries] == [2] + [1] * 8
    assert "".join(entry["token"] for entry in entries) == "3 > 5 > 1 > 4 > 2"


async def test_ollama_gives_log_probabilities_on_its_own_route() -> None:
    body = chat(window(texts()), logprobs=True, top_logprobs=5, stream=False)
    async with JudgeServer(JudgeConfig(kind="ollama"), FRUIT) as judge:
        _, answer = await post(judge, body, "/api/chat")
    assert [one["token"] for one in answer["logprobs"][0]["top_logprobs"]] == list("35142")


async def test_rerank_orders_by_gain_without_position_bias() -> None:
    body = {"model": "judge", "query": FRUIT.queries["keep"], "documents": texts(), "top_n": 4}
    config = JudgeConfig(kind="llama.cpp", bias="first", bias_strength=100.0)
    async with JudgeServer(config, FRUIT) as judge:
        status, answer = await post(judge, body, "/v1/rerank")
        documents = [{"text": text} for text in texts()]
        assert (await post(judge, body | {"documents": documents}, "/rerank"))[1] == answer
        assert [call.purpose for call in judge.calls] == ["rerank", "rerank"]
    assert status == 200
    results = answer["results"]
    assert [NAMES[one["index"]] for one in results] == list(KEEP[:4])
    assert all(0 < one["relevance_score"] < 1 for one in results)
    assert answer["usage"]["prompt_tokens"] > 0


async def test_rerank_as_text_embeddings_inference_does() -> None:
    async with JudgeServer(JudgeConfig(), FRUIT) as judge:
        body = {"query": FRUIT.queries["keep"], "texts": texts()}
        _, answer = await post(judge, body, "/rerank")
        assert [NAMES[one["index"]] for one in answer] == list(KEEP)
        assert [one["score"] for one in answer] == sorted(
            (one["score"] for one in answer), reverse=True
        )
        assert (await post(judge, body | {"texts": ["x"] * 33}, "/rerank"))[0] == 413


async def test_documents_that_are_parts_of_a_message_are_read() -> None:
    parts = [{"type": "text", "text": window(texts())}]
    body = {
        "messages": [{"role": "system", "content": "Rank."}, {"role": "user", "content": parts}]
    }
    async with JudgeServer(knowledge=Knowledge(FRUIT.documents, {}, FRUIT.gains)) as judge:
        assert (await post(judge, body))[0] == 200
        assert judge.unknown == 0
