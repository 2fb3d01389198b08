"""Made-up queries, the same each time, as large as they are wanted."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_WORDS = 50_000


def make_input(path: Path, queries: int, candidates: int, text_bytes: int) -> None:
    """Write so many queries; texts are cut from one long text, so that it takes no time."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(_lines(queries, candidates, text_bytes))


def _lines(queries: int, candidates: int, text_bytes: int) -> Iterator[str]:
    rng = random.Random(7)
    text = _text()
    last = len(text) - text_bytes
    for number in range(queries):
        documents = [
            {
                "docid": f"d{rng.randrange(10**7)}-{place}",
                "score": candidates - place / 2,
                "doc": {"text": text[start : start + text_bytes]},
            }
            for place in range(candidates)
            for start in (rng.randrange(last),)
        ]
        start = rng.randrange(last)
        query = {"qid": f"q{number}", "text": text[start : start + 40]}
        yield json.dumps({"query": query, "candidates": documents}) + "\n"


@cache
def _text() -> str:
    rng = random.Random(7)
    return " ".join("".join(rng.choices(_LETTERS, k=rng.randint(2, 9))) for _ in range(_WORDS))
