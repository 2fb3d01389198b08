"""The time of a run: its end, the limits of its queries, and that quiet hours take none of it."""

from __future__ import annotations

import asyncio
from datetime import datetime

import pytest

from batchrank.errors import BatchrankError
from batchrank.progress.counts import Progress
from batchrank.running.night import End, end_of
from batchrank.running.timekeeper import Timekeeper
from batchrank.spec.jobspec import JobSpec
from tests.endpoints.acting import Clock

HOUR = 3600.0
MIDNIGHT = datetime(2026, 11, 30).astimezone().timestamp()


class Standing(Clock):
    """A clock of which nobody's waits take any time unless `run` lets them."""

    def __init__(self) -> None:
        super().__init__()
        self.moved = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        """Wait until `run` has moved the time so far."""
        due = self.time + seconds
        while self.time < due:
            await self.moved.wait()

    async def run(self, to: float) -> None:
        """Go on to a time, past all who wait for it."""
        self.time = to
        self.moved.set()
        self.moved.clear()
        for _ in range(10):
            await asyncio.sleep(0)


def spec(**given: object) -> JobSpec:
    return JobSpec.model_validate({"quiet_hours": "08:00-20:00", **given})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Standing:
    """Of the wall, of work and of the loop."""
    found = Standing()
    monkeypatch.setattr("batchrank.running.pace.monotonic", found.now)
    return found


def keeper(clock: Clock, **given: object) -> Timekeeper:
    stopped: list[BatchrankError] = []
    return Timekeeper(spec(**given), clock, say=print, stop=stopped.append)


async def test_quiet_hours_are_no_time_that_a_run_works(clock: Standing) -> None:
    clock.time = 7 * HOUR
    kept = await keeper(clock, time_limit="14h").__aenter__()
    assert kept.set_end(None).seconds == 2 * HOUR
    await asyncio.sleep(0)
    started = kept.pace.start()
    await clock.run(7.5 * HOUR)
    assert kept.pace.left == 1.5 * HOUR
    await clock.run(8 * HOUR)
    await clock.run(19 * HOUR)
    assert kept.pace.left == HOUR
    await clock.run(20.5 * HOUR)
    assert kept.pace.left == HOUR, "the wake-up lets the time go on"
    await clock.run(20.75 * HOUR)
    assert kept.pace.left == 0.75 * HOUR
    kept.pace.finish(started)
    assert not kept.pace.has_room, "a query took 1 h 15 min of work, and not 13 h 45 min"
    progress = Progress(started=0.0, now=13.75 * HOUR)
    kept.tell(progress)
    assert progress.seconds_at_work == 1.25 * HOUR
    await kept.__aexit__(None, None, None)


async def test_a_query_is_not_given_up_for_quiet_hours(
    clock: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asyncio.get_running_loop(), "time", clock.now)
    clock.time = 8 * HOUR - 30
    kept = await keeper(clock).__aenter__()
    await asyncio.sleep(0)
    reached = []

    async def query() -> None:
        async with kept.at_most(60) as begin:
            begin()
            for moment in (8 * HOUR, 20 * HOUR + 29, 20 * HOUR + 31):
                await clock.run(moment)
                reached.append(moment)
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await query()
    assert reached[:2] == [8 * HOUR, 20 * HOUR + 29], "quiet hours, and 59 s of 60"
    clock.time += 12 * HOUR  # within the next
    async with kept.at_most(60) as begin:
        begin()
        await clock.run(clock.time + 3 * HOUR)
    async with kept.at_most(None) as begin:
        begin()
        await clock.run(clock.time + 3 * HOUR)
    await kept.__aexit__(None, None, None)


@pytest.mark.parametrize("again", [(), (30,), (10, 20, 59)])
async def test_a_query_has_its_time_from_its_first_call_on(
    clock: Standing, monkeypatch: pytest.MonkeyPatch, again: tuple[float, ...]
) -> None:
    monkeypatch.setattr(asyncio.get_running_loop(), "time", clock.now)
    clock.time = 21 * HOUR
    kept = keeper(clock)
    reached = []

    async def query() -> None:
        async with kept.at_most(60) as begin:
            await clock.run(clock.time + 5 * HOUR)  # waits for a slot
            begun = clock.time
            begin()
            for second in again:
                await clock.run(begun + second)
                begin()
            for second in (59.5, 60.5):
                await clock.run(begun + second)
                reached.append(second)
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await query()
    assert reached[:1] == [59.5]


async def test_a_query_without_a_call_has_all_the_time_there_is(
    clock: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asyncio.get_running_loop(), "time", clock.now)
    kept = keeper(clock)
    async with kept.at_most(60) as begin:
        await clock.run(12 * HOUR)
    begin()  # another query's call, that this one had joined, is tried again
    await clock.run(24 * HOUR)


def ends(begun: float, now: float, **given: object) -> End:
    begun, now = MIDNIGHT + begun * HOUR, MIDNIGHT + now * HOUR
    return end_of(spec(**given), begun, now, None)


def test_a_deadline_is_that_of_the_night_in_which_a_run_began() -> None:
    """Whatever it waited for: the store, the server, the end of quiet hours."""
    late = ends(23, 31, deadline="06:00", quiet_hours="12:00-13:00")
    assert late.deadline == MIDNIGHT + 30 * HOUR
    assert late.seconds == 0
    assert late.refusal is not None
    assert "from Tue 18:00 on" not in late.refusal  # of that day it is 18:00
    assert "from 18:00 on" in late.refusal


@pytest.mark.parametrize(
    ("now", "flags", "at", "seconds", "is_refused", "is_noted"),
    [
        (21, {}, None, None, False, False),
        (21, {"deadline": "06:00"}, 30, 9, False, False),
        (21, {"deadline": "08:00"}, 32, 11, False, False),
        (21, {"deadline": "08:01"}, 32, 11, False, True),
        (21, {"deadline": "20:00"}, 32, 11, False, True),
        (21, {"deadline": "20:30"}, 44.5, 11.5, False, False),
        (21, {"deadline": "06:00", "time_limit": "2h"}, 23, 2, False, False),
        (12, {"deadline": "06:00"}, 30, 10, False, False),
        (12, {"deadline": "19:00"}, 12, 0, True, False),
        (12, {"time_limit": "8h"}, 12, 0, True, False),
        (12, {"time_limit": "9h"}, 21, 1, False, False),
    ],
)
def test_ends_and_quiet_hours(
    now: float,
    flags: dict[str, str],
    at: float | None,
    seconds: float | None,
    is_refused: bool,
    is_noted: bool,
) -> None:
    end = ends(now, now, **flags)
    assert end.at == (None if at is None else MIDNIGHT + at * HOUR)
    assert end.seconds == (None if seconds is None else seconds * HOUR)
    assert (end.refusal is not None, end.note is not None) == (is_refused, is_noted)
