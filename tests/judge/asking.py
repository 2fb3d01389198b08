"""Shows windows to a judge over HTTP, as a client would."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import aiohttp

from scripts.judge import JudgeConfig, JudgeServer, Knowledge

FRUIT = Knowledge(
    documents={
        "apple": ("", "Apples are picked in autumn and keep for months in a cool cellar."),
        "pear": ("", "Pears ripen off the tree; pick them while they are still hard and green."),
        "plum": ("", "Plums are dried to prunes, boiled to jam, or eaten straight from the tree."),
        "lime": ("Limes", "A lime tree bears fruit all year where there is no frost at all."),
        "fig": ("Figs", "Figs need a warm wall, little water, and a gardener who is patient."),
    },
    queries={"keep": "which fruit keeps longest", "frost": "fruit that hates frost"},
    gains={
        "keep": {"apple": 3.0, "pear": 1.0, "plum": 2.0, "lime": 0.0, "fig": 0.5},
        "frost": {"lime": 3.0, "fig": 2.0, "plum": 1.0, "apple": 0.0, "pear": 0.5},
    },
)
NAMES = ("pear", "lime", "apple", "fig", "plum")
KEEP = ("apple", "plum", "pear", "fig", "lime")
FROST = ("lime", "fig", "plum", "pear", "apple")


def texts(names: Sequence[str] = NAMES) -> list[str]:
    """The texts of the fruit with these docids."""
    return [FRUIT.documents[name][1] for name in names]


def window(
    shown: Sequence[str],
    query: str = "which fruit keeps longest",
    *,
    task: str = "Rank all documents.",
    letters: bool = False,
) -> str:
    """A listwise prompt that shows these texts."""
    marks = [chr(65 + place) if letters else str(place + 1) for place in range(len(shown))]
    lines = "\n".join(f"[{mark}] {text}" for mark, text in zip(marks, shown, strict=True))
    return f"You rank search results.\n\nQuery: {query}\n\n{lines}\n\nQuery: {query}\n{task}"


def chat(prompt: str, **fields: Any) -> dict[str, Any]:
    """The body of a chat request."""
    return {"model": "judge", "messages": [{"role": "user", "content": prompt}], **fields}


async def post(
    judge: JudgeServer, body: object, path: str = "/v1/chat/completions"
) -> tuple[int, Any]:
    """Status and JSON of one request."""
    async with (
        aiohttp.ClientSession() as session,
        session.post(judge.url + path, json=body) as response,
    ):
        return response.status, await response.json()


async def get(judge: JudgeServer, path: str) -> tuple[int, str, Any]:
    """Status, text and, where it is JSON, value of one page."""
    async with aiohttp.ClientSession() as session, session.get(judge.url + path) as response:
        is_json = response.content_type == "application/json"
        return response.status, await response.text(), await response.json() if is_json else None


async def content(judge: JudgeServer, prompt: str, **fields: Any) -> str:
    """The text of one good answer."""
    status, body = await post(judge, chat(prompt, **fields))
    assert status == 200, body
    text = body["choices"][0]["message"]["content"]
    assert isinstance(text, str)
    return text


def named(text: str, names: Sequence[str] = NAMES) -> tuple[str, ...]:
    """The docids that an answer `[3] > [1]` names."""
    return tuple(names[int(mark.strip(" []")) - 1] for mark in text.split(">"))


async def contents(config: JudgeConfig, prompts: Sequence[str]) -> list[str]:
    """The answers of a judge of fruit to several prompts."""
    async with JudgeServer(config, FRUIT) as judge:
        return [await content(judge, prompt) for prompt in prompts]
