"""Every recorded misbehaviour of a server that concerns one attempt gets its right class."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import orjson
import pytest

from batchrank.backends.base import BackendOptions, Call, ask
from batchrank.backends.bodies import read_answer
from batchrank.backends.http import Http
from batchrank.backends.openai import OpenAIBackend
from batchrank.calls import Answer, Usage
from batchrank.errors import (
    BadResponseError,
    ContextOverflowError,
    FatalServerError,
    OverloadedError,
    ServerError,
    UnavailableError,
)
from tests.backends.servers import Reply, scripted

ERRORS: dict[str, type[ServerError]] = {
    "server-001": ContextOverflowError,
    "server-002": ContextOverflowError,
    "server-004": ContextOverflowError,
    "server-006": ContextOverflowError,
    "server-017": UnavailableError,
    "server-018": BadResponseError,
    "server-021": UnavailableError,
    "server-025": OverloadedError,
    "server-032": UnavailableError,
    "server-033": BadResponseError,
    "server-034": BadResponseError,
    "server-037": OverloadedError,
    "server-038": FatalServerError,
    "server-039": FatalServerError,
}
ANSWERS = {
    "server-010": Answer("", "[2] > [3] > [1]", "stop", Usage(900, 20)),
    "server-013": Answer("", "... 1. [2] 2. [1] ..."),
    "server-015": Answer("", '{"ranking": [2, 1, 3]}'),
    "server-020": Answer("[2] > [1] > [3]", usage=Usage(900, 20)),
    "server-030": Answer("[1] > [2]"),
    "server-031": Answer("[2] > [1]", usage=Usage(23, 0)),
}
ELSEWHERE = {
    "server-022": "below: it needs two routes",
    "server-026": "test_http: it needs a socket that is dropped",
    "server-027": "test_ollama: warming up waits as long as it is told",
    "server-040": "of a whole run, not of one attempt",
}


def cases(folder: Path) -> dict[str, object]:
    lines = (folder / "cases.jsonl").read_bytes().splitlines()
    found = [orjson.loads(line) for line in lines]
    return {case["id"]: case["payload"] for case in found if case["kind"] == "server"}


async def attempt(payload: object) -> Answer:
    assert isinstance(payload, Mapping)
    reply = Reply(
        payload.get("body", payload), payload.get("status", 200), payload.get("headers", {})
    )
    async with scripted({"/chat": reply}) as server:
        http = Http(server.url)
        try:
            return await ask(http, Call("/chat", b"{}", read_answer), 10)
        finally:
            await http.close()


def test_no_case_is_left_out(shared_data: Path) -> None:
    assert cases(shared_data).keys() == ERRORS.keys() | ANSWERS.keys() | ELSEWHERE.keys()


@pytest.mark.parametrize("case", ERRORS)
async def test_errors(shared_data: Path, case: str) -> None:
    with pytest.raises(ServerError) as caught:
        await attempt(cases(shared_data)[case])
    assert type(caught.value) is ERRORS[case]


@pytest.mark.parametrize(
    ("case", "numbers"),
    [
        ("server-001", (14429, 8192)),
        ("server-002", (4390, 4096)),
        ("server-004", (1407, 256)),
        ("server-006", (28491, 16384)),
    ],
)
async def test_overflows_carry_their_numbers(
    shared_data: Path, case: str, numbers: tuple[int, int]
) -> None:
    with pytest.raises(ContextOverflowError) as caught:
        await attempt(cases(shared_data)[case])
    assert (caught.value.prompt_tokens, caught.value.context) == numbers


async def test_loading_and_waiting(shared_data: Path) -> None:
    with pytest.raises(UnavailableError) as loading:
        await attempt(cases(shared_data)["server-021"])
    assert loading.value.loading
    with pytest.raises(OverloadedError) as waiting:
        await attempt(cases(shared_data)["server-037"])
    assert waiting.value.retry_after == 7


@pytest.mark.parametrize("case", ANSWERS)
async def test_answers(shared_data: Path, case: str) -> None:
    answer = await attempt(cases(shared_data)[case])
    assert answer.seconds > 0
    expected = ANSWERS[case]
    assert (answer.text, answer.reasoning) == (expected.text, expected.reasoning)
    assert (answer.finish, answer.usage) == (expected.finish, expected.usage)


async def test_a_list_of_models_does_not_mean_that_one_is_loaded(shared_data: Path) -> None:
    routes = cases(shared_data)["server-022"]
    assert isinstance(routes, list)
    script = {route["path"]: Reply(route["body"], route["status"]) for route in routes}
    async with scripted(script) as server:
        backend = OpenAIBackend(BackendOptions(server.url))
        with pytest.raises(UnavailableError) as caught:
            await backend.describe()
        await backend.close()
    assert caught.value.loading
