"""Finding how many calls a server takes, against simulated servers on a simulated clock."""

from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import dataclass
from random import Random

import pytest

from batchrank.calls import Form, ServerInfo
from batchrank.serving.capacity import Capacity, capacity_of

MEAN = 0.05


@dataclass
class Seen:
    """What a simulation ends with; `use` is the share of the slots' time in its second half."""

    use: float
    limits: list[int]
    turned_away: int


def simulate(
    slots: int,
    calls: int,
    *,
    start: int = 16,
    most: int = 1024,
    sigma: float = 0.0,
    failing: float = 0.0,
    queue: int | None = None,
) -> Seen:
    """Drive a server with `slots` whose calls take lognormal times as hard as the limit allows."""
    random = Random(7)
    capacity = Capacity(start, most)
    now, flying, done, half, turned_away = 0.0, 0, 0, 0.0, 0
    at_work: list[tuple[float, float, bool]] = []
    line: deque[float] = deque()
    limits: list[int] = []

    def begin(sent: float) -> None:
        seconds = MEAN * math.exp(random.gauss(0, sigma) - sigma**2 / 2)
        heapq.heappush(at_work, (now + seconds, sent, random.random() >= failing))

    while done < calls:
        while flying < capacity.limit:
            if len(at_work) < slots:
                begin(now)
            elif queue is None or len(line) < queue:
                line.append(now)
            else:
                turned_away += 1
                capacity.strained(capacity.generation)
                break
            flying += 1
        now, sent, well = heapq.heappop(at_work)
        if line:
            begin(line.popleft())
        full = flying >= capacity.limit
        flying -= 1
        if well:
            done += 1
            capacity.answered(now, now - sent, full=full)
        limits.append(capacity.limit)
        if done <= calls // 2:
            half = now
    use = (done - calls // 2) * MEAN / ((now - half) * slots)
    return Seen(use, limits[len(limits) // 2 :], turned_away)


@pytest.mark.parametrize("slots", [1, 4, 10, 17, 64])
@pytest.mark.parametrize("sigma", [0.0, 1.0])
def test_it_finds_the_slots_of_a_server_that_does_not_tell(slots: int, sigma: float) -> None:
    seen = simulate(slots, 12_000 + 300 * slots, sigma=sigma)
    assert seen.use > 0.94
    # And does not fill the queue: at the end of the day, others use the server too.
    assert sum(seen.limits) / len(seen.limits) < 1.6 * slots + 1


@pytest.mark.parametrize("sigma", [0.0, 1.0])
def test_a_few_failures_do_not_make_it_shrink(sigma: float) -> None:
    calm, failing = (simulate(16, 15_000, sigma=sigma, failing=share) for share in (0.0, 0.02))
    assert failing.use > 0.94 * 0.98
    assert min(failing.limits) > 0.6 * min(calm.limits)


def test_it_stays_within_a_queue_that_turns_calls_away() -> None:
    seen = simulate(64, 40_000, sigma=0.5, queue=10)
    assert seen.use > 0.85
    assert seen.turned_away < 0.005 * 40_000


def test_it_starts_again_where_a_server_gets_slower_and_never_below_one() -> None:
    capacity = Capacity(16, 1024)
    capacity.strained(0)
    assert capacity.limit == 8
    capacity.strained(0)
    assert capacity.limit == 8, "what was sent before the last decrease says nothing new"
    for generation in range(1, 9):
        capacity.strained(generation)
    assert capacity.limit == 1


def test_it_does_not_grow_where_there_is_not_enough_to_send() -> None:
    capacity = Capacity(16, 1024)
    for call in range(5000):
        capacity.answered(call * 0.01, 0.05, full=False)
    assert capacity.limit == 16


def server(kind: str, slots: int | None = None) -> ServerInfo:
    return ServerInfo(kind, "m", "m", (Form.TEXT,), slots=slots)


def test_what_is_known_is_not_searched_for() -> None:
    assert capacity_of(server("llama.cpp", 16), None).limit == 20
    assert capacity_of(server("ollama"), None).limit == 4
    assert capacity_of(server("vllm"), None).limit == 16
    fixed = capacity_of(server("vllm", 4), 7)
    fixed.strained(0)
    for call in range(1000):
        fixed.answered(call * 0.01, 0.05, full=True)
    assert fixed.limit == 7
