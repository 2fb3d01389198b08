"""Decides, by seed, which attempt of which request fails and how."""

from __future__ import annotations

import random
from collections import Counter

from .config import Fault, JudgeConfig


class Faults:
    """Memory is one counter a distinct request."""

    def __init__(self, config: JudgeConfig) -> None:
        self._config = config
        self._attempts: Counter[str] = Counter()
        self._failed: set[str] = set()

    def next(self, digest: str) -> Fault | None:
        """How the next attempt of the request with this hash fails; None where it succeeds."""
        config = self._config
        if not config.error_rate or (config.fail_once and digest in self._failed):
            return None
        self._attempts[digest] += 1
        stream = random.Random(f"{config.seed} error {digest} {self._attempts[digest]}")
        if stream.random() >= config.error_rate:
            return None
        self._failed.add(digest)
        return stream.choice(config.errors)
