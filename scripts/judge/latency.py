"""How long an answer takes: slots with a queue, token rates and a cache of shared prefixes."""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from .config import JudgeConfig
from .scoring import normal

BLOCK = 64
"""Tokens of a cached block: a prefix counts in whole blocks, as in vLLM."""


class QueueFullError(Exception):
    """All slots are busy and the queue is full."""


class PrefixCache:
    """The most recently used prompt prefixes, up to `capacity` tokens."""

    def __init__(self, capacity: int) -> None:
        self._blocks = capacity // BLOCK
        self._seen: OrderedDict[int, None] = OrderedDict()

    def cached(self, prompt: str) -> int:
        """How many of the prompt's first tokens are in the cache, into which the prompt goes."""
        if not self._blocks:
            return 0
        width = 4 * BLOCK
        chain, hits, unbroken = 0, 0, True
        for start in range(0, len(prompt) - width + 1, width):
            chain = hash((chain, prompt[start : start + width]))
            unbroken = unbroken and chain in self._seen
            hits += unbroken
            self._seen[chain] = None
            self._seen.move_to_end(chain)
        while len(self._seen) > self._blocks:
            self._seen.popitem(last=False)
        return hits * BLOCK


class Slots:
    """Slots that are taken first come, first served; counts how long they were busy."""

    def __init__(self, config: JudgeConfig) -> None:
        self._config = config
        self._slots = None if config.slots is None else asyncio.Semaphore(config.slots)
        self.busy_seconds = 0.0
        self.busy = 0
        self.waiting = 0
        self.max_in_flight = 0

    def seconds(self, prompt_tokens: int, completion_tokens: int, digest: str) -> float:
        """How long a slot needs for a request whose bytes hash to `digest`."""
        config = self._config
        seconds = config.call_seconds
        if config.sigma:
            drawn = normal(config.seed, "latency", digest)
            seconds *= math.exp(config.sigma * drawn - config.sigma**2 / 2)
        if config.prompt_rate:
            seconds += prompt_tokens / config.prompt_rate
        if config.generated_rate:
            seconds += completion_tokens / config.generated_rate
        return seconds

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """Hold a slot, waiting for one in line. Raises QueueFullError."""
        slots, queue = self._slots, self._config.queue
        if slots is not None:
            if queue is not None and slots.locked() and self.waiting >= queue:
                raise QueueFullError
            self.waiting += 1
            self.max_in_flight = max(self.max_in_flight, self.busy + self.waiting)
            try:
                await slots.acquire()
            finally:
                self.waiting -= 1
        self.busy += 1
        self.max_in_flight = max(self.max_in_flight, self.busy + self.waiting)
        began = time.perf_counter()
        try:
            yield
        finally:
            self.busy_seconds += time.perf_counter() - began
            self.busy -= 1
            if slots is not None:
                slots.release()
