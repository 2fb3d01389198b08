"""Reads a prompt back: the labelled documents, the query and how many identifiers are asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_ALONE = re.compile(
    r"^(?:Document|Passage|文档)\s*[:：]\s*(.*?)(?:\n\n|\Z)", re.MULTILINE | re.DOTALL
)
_CONCLUSION = re.compile(r"^(?:Ranking: ?|排序：) ?(?=\[?[\dA-Z])", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ReadPrompt:
    """`labels` are "1", "2", … or "A", "B", …; `texts` what stands behind each, in prompt order.

    A prompt that asks about one document has its text and no label. `conclusion` is how the last
    line of an answer starts that explains first, "" where none is asked for.
    """

    labels: tuple[str, ...]
    texts: tuple[str, ...]
    query: str
    wanted: int | None
    conclusion: str = ""


def label(number: int, letters: bool) -> str:
    """The identifier of the `number`th document, from 1."""
    return chr(ord("A") + number - 1) if letters else str(number)


def prompt_text(messages: Sequence[Any]) -> str:
    """The text of all messages of a chat, parts joined by line ends."""
    texts: list[str] = []
    for message in messages:
        content = message.get("content") or ""
        parts = [content] if isinstance(content, str) else [p.get("text", "") for p in content]
        texts.extend(parts)
    return "\n".join(texts)


def count_prompt(text: str) -> int:
    """The estimate of a prompt's tokens: UTF-8 bytes / 4, rounded up."""
    return -(-len(text.encode()) // 4)


def read_prompt(text: str, query: re.Pattern[str], wanted: re.Pattern[str]) -> ReadPrompt:
    """Find the documents as the lines that start with `[1] `, `[2] `, … (or `[A] `) in sequence.

    `query` and `wanted` are searched for outside the documents, which end at the blank line
    behind the last one; the group that matched is taken.
    """
    # Splitting is several times as fast as a regular expression over 16 KB.
    head, *pieces = ("\n" + text).split("\n[")
    labels: list[str] = []
    texts: list[str] = []
    letters = False
    for piece in pieces:
        name, closed, rest = piece.partition("]")
        if closed and rest[:1].isspace() and not rest.startswith(" > ["):
            if not labels and name in ("1", "A"):
                letters = name == "A"
            if name == label(len(labels) + 1, letters):
                labels.append(name)
                texts.append(rest[1:])
                continue
        if labels:
            texts[-1] += "\n[" + piece
        else:
            head += "\n[" + piece
    tail = ""
    if texts:
        texts[-1], _, tail = texts[-1].partition("\n\n")
    elif (alone := _ALONE.search(text)) is not None:
        texts.append(alone[1])
    outside = f"{head}\n{tail}"
    found_query = query.search(outside)
    # Not in the query itself, which may be about "the 10 best restaurants".
    found_wanted = wanted.search(query.sub("", outside))
    conclusion = _CONCLUSION.search(tail)
    return ReadPrompt(
        tuple(labels),
        tuple(texts),
        found_query[1].strip() if found_query else "",
        int(found_wanted[found_wanted.lastindex or 0]) if found_wanted else None,
        conclusion[0] if conclusion else "",
    )
