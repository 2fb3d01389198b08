"""Malformed answers, errors, limits and what the judge remembers of its calls."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import aiohttp
import pytest

from scripts.judge import JudgeConfig, JudgeServer
from scripts.judge.config import Fault, Kind, Malformed
from tests.waiting import soon

from .asking import FRUIT, chat, content, contents, get, post, texts, window

MALFORMED: list[tuple[Malformed, str]] = [
    ("prose", r"All 5 passages [a-z ]+\."),
    ("repeats", r"\[3\] > \[3\] > \[3\] > \[3\] > \[3\]"),
    ("missing", r"\[3\] > \[5\]"),
    ("out-of-range", r"\[3\] > \[5\] > \[1\] > \[4\] > \[([6-9]|10)\]"),
    ("torn", r"\[3\] > \[5\] > \["),
    ("empty", ""),
    ("think", r"(?s)<think>.*"),
]


@pytest.mark.parametrize(("kind", "pattern"), MALFORMED)
async def test_every_kind_of_malformed_answer(kind: Malformed, pattern: str) -> None:
    config = JudgeConfig(malformed_rate=1.0, malformed=(kind,))
    async with JudgeServer(config, FRUIT) as judge:
        _, body = await post(judge, chat(window(texts())))
    choice = body["choices"][0]
    assert re.fullmatch(pattern, choice["message"]["content"])
    assert choice["finish_reason"] == ("length" if kind in ("torn", "think") else "stop")


async def test_letters_out_of_range_are_letters() -> None:
    config = JudgeConfig(malformed_rate=1.0, malformed=("out-of-range",))
    (answer,) = await contents(config, [window(texts(), letters=True)])
    assert re.fullmatch(r"\[C\] > \[E\] > \[A\] > \[D\] > \[[F-J]\]", answer)


async def test_a_constraint_rules_most_kinds_out() -> None:
    grammar = 'root ::= id " > " id\nid ::= [1-5]'
    config = JudgeConfig(kind="llama.cpp", malformed_rate=1.0, malformed=("prose", "missing"))
    async with JudgeServer(config, FRUIT) as judge:
        assert await content(judge, window(texts()), grammar=grammar) == "3 > 5"
    config = JudgeConfig(kind="llama.cpp", malformed_rate=1.0, malformed=("prose", "repeats"))
    async with JudgeServer(config, FRUIT) as judge:
        assert await content(judge, window(texts()), grammar=grammar) == "3 > 3"


async def test_the_malformed_rate_is_kept_and_the_same_request_fails_alike() -> None:
    config = JudgeConfig(malformed_rate=0.3, malformed=("empty",))
    prompts = [window(texts(), task=f"Rank them, {number}.") for number in range(300)]
    answers = await contents(config, prompts)
    assert 60 <= answers.count("") <= 120
    assert await contents(config, prompts[:20]) == answers[:20]


STATUS: list[tuple[Fault, int, str | None]] = [
    ("500", 500, None),
    ("503", 503, "2.5"),
    ("429", 429, "2.5"),
    ("html", 502, None),
    ("error-200", 200, None),
]


@pytest.mark.parametrize(("fault", "status", "retry_after"), STATUS)
async def test_every_kind_of_error(fault: Fault, status: int, retry_after: str | None) -> None:
    config = JudgeConfig(error_rate=1.0, errors=(fault,), retry_after=2.5)
    async with JudgeServer(config) as judge, aiohttp.ClientSession() as session:
        url = judge.url + "/v1/chat/completions"
        async with session.post(url, json=chat(window(texts()))) as response:
            body = await response.text()
            assert (response.status, response.headers.get("Retry-After")) == (status, retry_after)
        assert body.startswith("<html>") if fault == "html" else "error" in json.loads(body)
        assert [call.status for call in judge.calls] == [status]


async def test_a_reset_connection_is_counted_with_status_0() -> None:
    async with JudgeServer(JudgeConfig(error_rate=1.0, errors=("reset",))) as judge:
        with pytest.raises(aiohttp.ClientError):
            await post(judge, chat(window(texts())))
        assert [call.status for call in judge.calls] == [0]


async def test_a_client_that_leaves_frees_its_slot() -> None:
    async with JudgeServer(JudgeConfig(call_seconds=3600.0, slots=1)) as judge:
        asking = asyncio.ensure_future(post(judge, chat(window(texts()))))
        await soon(lambda: judge.stats()["in_flight"])
        asking.cancel()
        await soon(lambda: judge.calls)
        assert [(call.status, call.purpose) for call in judge.calls] == [(499, "window")]
        assert judge.stats()["in_flight"] == 0


async def test_a_hanging_call_says_nothing_until_its_connection_ends() -> None:
    config = JudgeConfig(error_rate=1.0, errors=("hang",), hang_seconds=0.05)
    async with JudgeServer(config) as judge:
        with pytest.raises(aiohttp.ClientError):
            await post(judge, chat(window(texts())))
        assert [call.status for call in judge.calls] == [0]


async def test_with_fail_once_a_second_attempt_succeeds() -> None:
    config = JudgeConfig(error_rate=1.0, errors=("500",), fail_once=True)
    async with JudgeServer(config, FRUIT) as judge:
        for prompt in (window(texts()), window(texts(), "frost")):
            statuses = [(await post(judge, chat(prompt)))[0] for _ in range(3)]
            assert statuses == [500, 200, 200]


async def test_errors_come_at_the_set_rate_and_another_attempt_may_succeed() -> None:
    async with JudgeServer(JudgeConfig(error_rate=0.5, errors=("500",)), FRUIT) as judge:
        body = chat(window(texts()))
        statuses = [(await post(judge, body))[0] for _ in range(200)]
    assert 70 <= statuses.count(500) <= 130


async def test_calls_are_appended_to_a_file_across_restarts(tmp_path: Path) -> None:
    config = JudgeConfig(log=tmp_path / "calls.jsonl")
    for _ in range(2):
        async with JudgeServer(config, FRUIT) as judge:
            await content(judge, window(texts()))
            await content(judge, "Say anything.")
    rows = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    assert [(row["status"], row["purpose"]) for row in rows] == [
        (200, "window"),
        (200, "other"),
    ] * 2
    assert [row["body"] for row in rows[:2]] == [row["body"] for row in rows[2:]]
    assert rows[0]["time"] <= rows[1]["time"]


@pytest.mark.parametrize("kind", ["llama.cpp", "vllm", "openai"])
async def test_a_prompt_beyond_the_context_is_refused(kind: Kind) -> None:
    async with JudgeServer(JudgeConfig(kind=kind, context=50), FRUIT) as judge:
        status, body = await post(judge, chat(window(texts())))
    assert status == 400
    if kind == "llama.cpp":
        assert body["error"]["type"] == "exceed_context_size_error"
        assert body["error"]["n_prompt_tokens"] > body["error"]["n_ctx"] == 50
    else:
        assert "maximum context length is 50 tokens" in body["error"]["message"]


async def test_ollama_drops_the_front_silently_unless_told_not_to() -> None:
    body = chat(window(texts()), options={"num_ctx": 40}, stream=False)
    async with JudgeServer(JudgeConfig(kind="ollama"), FRUIT) as judge:
        status, answer = await post(judge, body, "/api/chat")
        assert (status, answer["prompt_eval_count"]) == (200, 40)
        assert (await post(judge, body | {"truncate": False}, "/api/chat"))[0] == 400


@pytest.mark.parametrize(
    ("kind", "status"),
    [("llama.cpp", 200), ("vllm", 404), ("sglang", 404), ("openai", 404), ("ollama", 404)],
)
async def test_another_model_is_refused_but_by_llama_cpp(kind: Kind, status: int) -> None:
    async with JudgeServer(JudgeConfig(kind=kind), FRUIT) as judge:
        assert (await post(judge, chat(window(texts())) | {"model": "nope"}))[0] == status


async def test_a_wrong_key_is_refused() -> None:
    async with JudgeServer(JudgeConfig(api_key="right")) as judge, aiohttp.ClientSession() as http:
        statuses = []
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer right"}):
            async with http.get(judge.url + "/v1/models", headers=headers) as response:
                statuses.append(response.status)
    assert statuses == [401, 401, 200]


async def test_what_is_no_json_and_what_is_nowhere_is_refused() -> None:
    async with JudgeServer() as judge, aiohttp.ClientSession() as session:
        url = judge.url + "/v1/chat/completions"
        for body in (b"{", b"[]"):
            async with session.post(url, data=body) as response:
                assert response.status == 400
        assert (await post(judge, {}, "/v1/nothing"))[0] == 404
        assert (await get(judge, "/props"))[0] == 404


@pytest.mark.parametrize(
    "wrong",
    [{"error_rate": 1.5}, {"slots": 0}, {"bias": "left"}, {"malformed": ("odd",)}, {"kind": "tgi"}],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        JudgeConfig(**wrong)  # type: ignore[arg-type]
