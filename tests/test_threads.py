"""Reading ahead in a thread: one further than asked for, and left behind without a trace."""

from __future__ import annotations

import asyncio
from threading import Event

import pytest

from batchrank.threads import ReadAhead
from tests.waiting import soon


class Source:
    """Numbers up to `last`, then None; `failing` raises."""

    def __init__(self, last: int, failing: int | None = None) -> None:
        self.given = 0
        self._last = last
        self._failing = failing

    def next(self) -> int | None:
        """The next number."""
        self.given += 1
        if self.given == self._failing:
            raise ValueError(f"{self.given} can't be read")
        return self.given if self.given <= self._last else None


async def test_the_next_is_got_while_the_last_is_used() -> None:
    source = Source(last=3)
    ahead = ReadAhead(source.next)
    assert source.given == 0
    assert await ahead.next() == 1
    await soon(lambda: source.given == 2)
    assert [await ahead.next() for _ in range(3)] == [2, 3, None]
    assert source.given == 4
    ahead.close()


async def test_what_fails_ahead_fails_in_its_turn() -> None:
    source = Source(last=9, failing=2)
    ahead = ReadAhead(source.next)
    assert await ahead.next() == 1
    await soon(lambda: source.given == 2)
    with pytest.raises(ValueError, match="2 can't be read"):
        await ahead.next()


@pytest.mark.parametrize("asked", [False, True])
async def test_one_that_is_closed_leaves_no_task_though_its_thread_waits_for_ever(
    asked: bool,
) -> None:
    silent = Event()
    given = iter((1, None))
    ahead = ReadAhead(lambda: next(given) or silent.wait() or None)
    assert await ahead.next() == 1
    if asked:
        asking = asyncio.create_task(ahead.next())
        await asyncio.sleep(0)
        asking.cancel()
    ahead.close()
    await soon(lambda: asyncio.all_tasks() == {asyncio.current_task()})
    silent.set()


async def test_a_failure_that_nobody_asks_for_is_not_told() -> None:
    said: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
    source = Source(last=9, failing=2)
    ahead = ReadAhead(source.next)
    assert await ahead.next() == 1
    await soon(lambda: asyncio.all_tasks() == {asyncio.current_task()})
    ahead.close()
    del ahead
    await asyncio.sleep(0)
    assert said == []
