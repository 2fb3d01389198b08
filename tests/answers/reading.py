"""Shorthand to read an answer text in tests."""

from __future__ import annotations

from batchrank.answers import Reading, read
from batchrank.calls import Answer


def reading(
    text: str,
    documents: int = 3,
    wanted: int | None = None,
    *,
    finish: str = "stop",
    reasoning: str = "",
) -> Reading:
    """Read `text`, with all documents wanted unless said otherwise."""
    answer = Answer(text, reasoning=reasoning, finish=finish)
    return read(answer, documents, documents if wanted is None else wanted)
