"""Slots: never more in flight than allowed, the most urgent next, and none ever lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchrank.errors import StoppedError
from batchrank.serving.slots import Priority, Slots


@dataclass
class OneServer:
    """A lane that takes `limit` calls at once."""

    limit: int
    in_flight: int = 0
    weight: float = 1.0


def slots_of(capacity: int) -> Slots[OneServer]:
    """The slots of one server."""
    return Slots([OneServer(capacity)])


async def settle() -> None:
    """Let every task that can go on do so."""
    for _ in range(10):
        await asyncio.sleep(0)


class Callers:
    """Calls that hold a slot until they are told to end."""

    def __init__(self, slots: Slots[OneServer]) -> None:
        self.slots = slots
        self.began: list[Priority] = []
        self.tasks: dict[Priority, asyncio.Task[None]] = {}
        self._ends: dict[Priority, asyncio.Event] = {}

    async def call(self, *priorities: Priority) -> None:
        """Begin calls, in this order."""
        for priority in priorities:
            self._ends[priority] = asyncio.Event()
            self.tasks[priority] = asyncio.create_task(self._hold(priority))
        await settle()

    async def end(self, priority: Priority) -> None:
        """End a call that holds a slot."""
        self._ends[priority].set()
        await self.tasks[priority]
        await settle()

    async def _hold(self, priority: Priority) -> None:
        async with self.slots.slot(priority):
            self.began.append(priority)
            await self._ends[priority].wait()


async def test_the_most_urgent_waiter_is_next_and_equals_queue() -> None:
    callers = Callers(slots_of(1))
    await callers.call((0, 0), (0, 2), (0, 1), (-1, 9), (0, 3))

    for priority in ((0, 0), (-1, 9), (0, 1), (0, 2), (0, 3)):
        assert callers.began[-1] == priority
        await callers.end(priority)

    assert callers.slots.in_flight == 0


async def test_no_more_than_the_capacity_is_in_flight() -> None:
    callers = Callers(slots_of(3))

    await callers.call(*((0, number) for number in range(10)))
    assert (len(callers.began), callers.slots.in_flight) == (3, 3)
    await callers.end((0, 1))
    assert (len(callers.began), callers.slots.in_flight) == (4, 3)

    for number in (0, 2, 3, 4, 5, 6, 7, 8, 9):
        await callers.end((0, number))
    assert callers.slots.in_flight == 0


async def test_a_waiter_that_is_cancelled_is_passed_over() -> None:
    callers = Callers(slots_of(1))
    await callers.call((0, 0), (0, 1), (0, 2))

    callers.tasks[0, 1].cancel()
    await callers.end((0, 0))

    assert callers.began == [(0, 0), (0, 2)]
    await callers.end((0, 2))
    assert callers.slots.in_flight == 0


async def test_a_slot_handed_to_a_waiter_that_is_cancelled_goes_on_to_the_next() -> None:
    slots = slots_of(1)
    callers = Callers(slots)
    await callers.call((0, 0))
    await callers.call((0, 1), (0, 2))

    callers._ends[0, 0].set()
    await asyncio.sleep(0)  # the slot is handed over, and its new holder has not run yet
    callers.tasks[0, 1].cancel()
    await settle()

    assert callers.began == [(0, 0), (0, 2)]
    await callers.end((0, 2))
    assert slots.in_flight == 0


async def test_a_call_that_fails_or_is_cancelled_gives_its_slot_back() -> None:
    callers = Callers(slots_of(1))
    await callers.call((0, 0), (0, 1))

    callers.tasks[0, 0].cancel()
    await settle()

    assert callers.began == [(0, 0), (0, 1)]
    await callers.end((0, 1))
    with pytest.raises(ValueError, match="broken"):
        async with callers.slots.slot((0, 0)):
            raise ValueError("broken")
    assert callers.slots.in_flight == 0


async def test_a_stop_sends_home_who_waits_and_who_comes_and_nobody_else() -> None:
    callers = Callers(slots_of(1))
    await callers.call((0, 0), (0, 1), (0, 2))

    callers.slots.stop()
    await callers.call((0, 3))

    for number in (1, 2, 3):
        with pytest.raises(StoppedError):
            await callers.tasks[0, number]
    await callers.end((0, 0))
    assert callers.began == [(0, 0)]
    assert callers.slots.in_flight == 0


async def test_once_no_query_follows_those_with_most_left_go_first() -> None:
    callers = Callers(slots_of(1))
    await callers.call((0, 0), (-2, 1), (-1, 2), (0, 3))

    callers.slots.finish()
    callers.slots.finish()
    await callers.call((-1, 0), (-3, 4), (0, 5))

    for priority in ((0, 0), (0, 3), (0, 5), (-1, 0), (-1, 2), (-2, 1), (-3, 4)):
        assert callers.began[-1] == priority
        await callers.end(priority)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 5), st.integers(1, 8), st.integers(1, 5))
def test_the_last_queries_end_in_the_fewest_steps(queries: int, rounds: int, capacity: int) -> None:
    async def steps() -> int:
        slots = slots_of(capacity)
        slots.finish()
        step = asyncio.Event()

        async def query(number: int) -> None:
            for done in range(rounds):
                async with slots.slot((-done, number)):
                    await step.wait()

        open_queries = [asyncio.create_task(query(number)) for number in range(queries)]
        count = 0
        while not all(task.done() for task in open_queries):
            await settle()
            ended, step = step, asyncio.Event()
            ended.set()
            await settle()
            count += 1
        return count

    assert asyncio.run(steps()) == max(rounds, -(-queries * rounds // capacity))


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 4), st.integers(0, 2**32))
def test_whatever_happens_no_slot_is_lost(capacity: int, seed: int) -> None:
    random = Random(seed)

    async def hold(slots: Slots[OneServer], priority: Priority, check: Callable[[], None]) -> None:
        async with slots.slot(priority):
            check()
            for _ in range(random.randint(0, 3)):
                await asyncio.sleep(0)
            check()

    async def play() -> int:
        slots = slots_of(capacity)

        def check() -> None:
            assert 0 < slots.in_flight <= capacity

        tasks: list[asyncio.Task[None]] = []
        for number in range(30):
            priority = (-random.randint(0, 2), number)
            tasks.append(asyncio.create_task(hold(slots, priority, check)))
            if random.random() < 0.4:
                await asyncio.sleep(0)
            if random.random() < 0.3:
                random.choice(tasks).cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(o is None or isinstance(o, asyncio.CancelledError) for o in outcomes)
        # All of them can be had again.
        await _all_at_once(slots, capacity)
        return slots.in_flight

    assert asyncio.run(play()) == 0


async def _all_at_once(slots: Slots[OneServer], capacity: int) -> None:
    together = asyncio.Barrier(capacity)

    async def one() -> None:
        async with slots.slot((0, 0)):
            await together.wait()

    holders: list[Awaitable[None]] = [one() for _ in range(capacity)]
    await asyncio.gather(*holders)


async def test_no_more_than_so_many_in_all_lanes_together() -> None:
    """Also where there are more lanes than calls; a lane that closes leaves its room to others."""
    lanes = [OneServer(1), OneServer(1), OneServer(4)]
    callers = Callers(Slots(lanes, most=2))
    calls = [(0, number) for number in range(6)]
    await callers.call(*calls)
    assert callers.slots.capacity == callers.slots.in_flight == 2
    next(lane for lane in lanes if lane.in_flight).limit = 0
    for ended, call in enumerate(calls, 1):
        assert call in callers.began
        await callers.end(call)
        assert callers.slots.in_flight == min(2, len(calls) - ended)
    assert len(callers.began) == 6
