"""What a judge says of a single document: yes or no, a grade, a query's likelihood."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

Logprobs = tuple[tuple[str, float], ...]

GRADES = tuple(str(number) for number in range(11))
WORDS = ("yes", "no")
_RELEVANT = 1.5
"""The score from which on yes is likelier than no; in qrels with grades 0 to 3, between 1 and 2."""
_TOKEN = re.compile(r"\s*(?:[^\W\d_]+|\d+|.)", re.DOTALL)
_NATS_A_TOKEN = 6.0


def yes_or_no(score: float) -> Logprobs:
    """The log-probabilities of the two words, the likelier first."""
    odds = score - _RELEVANT
    yes = -math.log1p(math.exp(-odds)) if odds > 0 else odds - math.log1p(math.exp(odds))
    return tuple(sorted(zip(WORDS, (yes, yes - odds), strict=True), key=lambda pair: -pair[1]))


def grade(score: float) -> str:
    """A grade from 0 to 10, half way at the score from which on a document counts as relevant."""
    return str(round(10 / (1 + math.exp(_RELEVANT - score))))


def query_likelihood(target: str, score: float) -> Logprobs:
    """The tokens of a query with log-probabilities whose sum rises with the score."""
    tokens = _TOKEN.findall(target)
    return tuple((token, -_NATS_A_TOKEN + score / len(tokens)) for token in tokens)


def text_before(prompt: str) -> str:
    """The part of an echoed prompt before the query: up to the last quotation mark."""
    cut = max(prompt.rfind(mark) for mark in '"“') + 1
    return prompt[:cut]


def tokens_of(text: str) -> list[str]:
    """The pieces that a text is split into."""
    return _TOKEN.findall(text)


def numbers_of(text: str) -> list[int]:
    """A text's characters as token numbers, from which `text_of` makes it again."""
    return list(map(ord, text))


def text_of(numbers: Iterable[int]) -> str:
    """The text of such numbers."""
    return "".join(map(chr, numbers))
