"""What one server has done for a job, counted as it happens."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Literal

from batchrank.calls import Answer

LATENCY_BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)
"""Seconds: upper bounds, inclusive, of the counts of calls by how long they took."""

Health = Literal["well", "resting", "lost"]
"""Takes calls; is left alone until it answers a probe; can't serve this job any more."""


@dataclass(slots=True)
class Served:
    """Calls of one server: answered and failed attempts, tokens, and how long answers took.

    `latencies` has a count for each of LATENCY_BOUNDS and one for what took longer; `seconds` is
    the sum of all.
    """

    answered: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    latencies: list[int] = field(default_factory=lambda: [0] * (len(LATENCY_BOUNDS) + 1))

    def add(self, answer: Answer) -> None:
        """Count an answer."""
        self.answered += 1
        self.prompt_tokens += answer.usage.prompt_tokens
        self.completion_tokens += answer.usage.completion_tokens
        self.seconds += answer.seconds
        self.latencies[bisect_left(LATENCY_BOUNDS, answer.seconds)] += 1


@dataclass(frozen=True, slots=True)
class EndpointState:
    """One server at one moment: its health, the calls it may have and has, what it has done.

    `latencies` are aligned with LATENCY_BOUNDS, and one more at the end for what took longer.
    """

    url: str
    health: Health
    limit: int
    in_flight: int
    answered: int
    failed: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    latencies: tuple[int, ...]
    rate: float = 0.0
    """Answered calls a second, over the last minute, or since it came."""
