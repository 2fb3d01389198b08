"""Turns gains into scores: seeded noise, position bias, and word overlap where nothing is known."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

from .config import Bias, JudgeConfig
from .recognise import Recognised, hashed

_NORMAL = NormalDist()
_WORDS = re.compile(r"[a-z0-9]+|[^\W\x00-\x7f]")
"""A run of ASCII letters, or one character of any other script."""


_TIE = 1e-9
"""What at most is added to a gain, so that documents of one gain come in no order of a prompt."""


def scores(config: JudgeConfig, seen: Recognised, digest: str) -> tuple[float, ...]:
    """A score a document in prompt order; `digest` is the hash of the request's bytes."""
    count = len(seen.gains)
    drawn: Sequence[float] = [
        gain if docid is None else gain + _TIE * lot(config.seed, seen.qid, docid)
        for gain, docid in zip(seen.gains, seen.docids, strict=True)
    ]
    if config.noise:
        if config.noise_by != "document":
            stream = random.Random(f"{config.seed} noise {digest}")
            noises = [stream.gauss(0.0, 1.0) for _ in range(count)]
        else:
            noises = [
                0.0 if docid is None else normal(config.seed, seen.qid, docid)
                for docid in seen.docids
            ]
        drawn = [gain + config.noise * noise for gain, noise in zip(drawn, noises, strict=True)]
    if config.bias != "none":
        favours = bias(config.bias, count)
        drawn = [
            score + config.bias_strength * favour
            for score, favour in zip(drawn, favours, strict=True)
        ]
    return tuple(drawn)


@lru_cache(maxsize=200_000)
def lot(seed: int, qid: str, docid: str) -> float:
    """A number in (0, 1), by which a tie between two documents of a query is broken."""
    return hashed(seed, "tie", qid, docid)


@lru_cache(maxsize=200_000)
def normal(seed: int, *words: str) -> float:
    """A draw from N(0, 1) that is fixed by the seed and the words."""
    return _NORMAL.inv_cdf(hashed(seed, *words))


@lru_cache(maxsize=256)
def bias(kind: Bias, count: int) -> tuple[float, ...]:
    """How much each of `count` places in a prompt is favoured, from 0 to 1."""
    places = [place / max(1, count - 1) for place in range(count)]
    if kind == "first":
        return tuple(1.0 - place for place in places)
    if kind == "u-shape":
        return tuple((2.0 * place - 1.0) ** 2 for place in places)
    return (0.0,) * count


def overlap(query: str, texts: Sequence[str]) -> tuple[float, ...]:
    """The summed rarity, among `texts`, of the query's words that each text has."""
    asked = set(_WORDS.findall(query.lower()))
    found = [asked.intersection(_WORDS.findall(text.lower())) for text in texts]
    spread = Counter(word for words in found for word in words)
    return tuple(
        sum(math.log1p(len(texts) / spread[word]) for word in sorted(words)) for words in found
    )
