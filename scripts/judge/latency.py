"""How long an answer takes: slots with a queue, token rates and a cache of shared prefixes."""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable

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
    """Slots that are taken first come, first served; counts how long they were busy.

    A slot is free from the moment its call was due to end, and the next in line begins then,
    however late this process comes to see to it: rates are as set, also when the judge is busy.
    """

    def __init__(self, config: JudgeConfig) -> None:
        self._config = config
        self._waiting: deque[asyncio.Future[float]] = deque()
        self.busy_seconds = 0.0
        self.busy = 0
        self.max_in_flight = 0

    @property
    def waiting(self) -> int:
        """Requests in line for a slot."""
        return len(self._waiting)

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

    async def hold(self, work: Callable[[], float]) -> None:
        """Wait in line for a slot, then hold it for the seconds that `work` returns.

        Raises QueueFullError.
        """
        began = await self._taken()
        ends = began
        try:
            ends = began + work()
            if (left := ends - time.monotonic()) > 0:
                await asyncio.sleep(left)
        finally:
            # Earlier than due where the client left.
            ended = min(ends, time.monotonic())
            self.busy_seconds += ended - began
            self._free(ended)

    async def _taken(self) -> float:
        """The time at which a slot is taken."""
        slots, queue = self._config.slots, self._config.queue
        came = time.monotonic()
        if slots is None or self.busy < slots:
            self.busy += 1
            self._count()
            return came
        if queue is not None and self.waiting >= queue:
            raise QueueFullError
        turn: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._count()
        try:
            return max(came, await turn)
        except asyncio.CancelledError:
            if turn in self._waiting:
                self._waiting.remove(turn)
            elif not turn.cancelled():
                self._free(turn.result())
            raise

    def _free(self, at: float) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.cancelled():
                turn.set_result(at)
                return
        self.busy -= 1

    def _count(self) -> None:
        self.max_in_flight = max(self.max_in_flight, self.busy + self.waiting)
