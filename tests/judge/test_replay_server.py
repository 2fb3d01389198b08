"""The replay server answers what was recorded, and sensibly what was not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import aiohttp
import pytest

from batchrank.serving.sanity import CHANCE, sanity_requests
from scripts.judge import JudgeServer
from tests.replay_server import ReplayServer, read_rows

from .asking import FRUIT, chat, window

ROWS = [
    {"qid": "7", "docids": ["b", "c"], "response": "[2] > [1]"},
    {"qid": "7", "docids": ["a", "b"], "response": "first"},
    {"qid": "8", "docids": ["b", "a"], "response": "second"},
]


async def ask(server: ReplayServer | JudgeServer, *prompts: str) -> list[str]:
    """The server's answers in turn."""
    answers = []
    async with aiohttp.ClientSession(server.url) as session:
        for prompt in prompts:
            body = chat(prompt, max_tokens=99) | {"model": "replay"}
            if isinstance(server, JudgeServer):
                body["model"] = server.config.model
            async with session.post("/v1/chat/completions", json=body) as response:
                answers.append((await response.json())["choices"][0]["message"]["content"])
    return answers


async def test_by_window_the_docids_in_their_order_decide() -> None:
    async with ReplayServer(ROWS, by="window") as server:
        asked = [window(w, "7") for w in ("ab", "bc", "ba", "ab", "ac")]
        assert await ask(server, *asked) == [
            "first",
            "[2] > [1]",
            "second",
            "first",
            "This window was not recorded.",
        ]
        assert (server.replayed.total(), server.missed, server.other) == (4, 1, 0)


async def test_by_order_the_calls_of_a_query_are_counted() -> None:
    async with ReplayServer(ROWS, by="order") as server:
        asked = [window("ac", qid) for qid in ("7", "8", "7", "7", "9")]
        missing = "This window was not recorded."
        assert await ask(server, *asked) == ["[2] > [1]", "second", "first", missing, missing]
        assert server.replayed == {"7": 2, "8": 1}
        assert server.missed == 2


async def test_texts_that_were_not_recorded_are_ordered_by_the_words_of_the_query() -> None:
    async with ReplayServer(ROWS, by="window") as server:
        answers = await ask(
            server,
            window(["one", "two", "three"], "none"),
            window(["rain", "warm bread", "bread"], "warm bread", task="Name the 2 best."),
            "Write the word hello.",
        )
        assert answers == ["[1] > [2] > [3]", "[2] > [3]", "hello"]
        assert (server.replayed.total(), server.missed, server.other) == (0, 0, 3)


async def test_both_servers_pass_the_check_that_a_client_makes_with_texts_of_its_own() -> None:
    requests = sanity_requests()
    for server in (ReplayServer(ROWS, by="order"), JudgeServer(knowledge=FRUIT)):
        async with server:
            ranks = []
            for request, best in requests:
                shown = [document.text for document in request.candidates]
                (answer,) = await ask(server, window(shown, request.query.text))
                docids = [request.candidates[int(i) - 1].docid for i in re.findall(r"\d+", answer)]
                ranks.append(docids.index(best) + 1)
            assert sum(ranks) / len(ranks) <= CHANCE - 1


@pytest.mark.parametrize(
    ("name", "by"), [("vicuna7b_v2_dl19", "window"), ("vicuna13b_base_dl19", "order")]
)
async def test_every_recorded_call_is_replayed(
    shared_data: Path, name: str, by: Literal["window", "order"]
) -> None:
    rows = read_rows(shared_data / "replay" / f"{name}.jsonl.gz")
    async with ReplayServer(rows, by) as server:
        prompts = [window(row["docids"], row["qid"]) for row in rows]
        assert await ask(server, *prompts) == [row["response"] for row in rows]
        assert (server.replayed.total(), server.missed, server.other) == (387, 0, 0)
