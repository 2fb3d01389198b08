"""Deadlines: read from text, tied to their night, and a pace that is learnt."""

from __future__ import annotations

import time as time_zone
from datetime import UTC, datetime, time, timedelta
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchrank.errors import UsageError
from batchrank.running.deadline import Night, next_deadline
from batchrank.running.pace import Pace, WorkClock
from batchrank.spec.times import parse_clock, parse_duration

MONOTONIC = "batchrank.running.pace.monotonic"

HOUR = 3600.0
EVENING = datetime(2026, 11, 30, 23, 0).astimezone().timestamp()


class Time:
    """A monotonic clock that is moved by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(MONOTONIC, lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    return Time(monkeypatch)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("3h", 10800), ("1h30m", 5400), ("45s", 45), ("0.5h", 1800), ("2m1s", 121), ("0s", 0)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "3", "h", "3x", "-1h", "1m1h", "3 h"])
def test_no_duration(text: str) -> None:
    with pytest.raises(UsageError, match="write it like"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["", "6", "25:00", "06:61", "6am", "06:00:00"])
def test_no_time_of_day(text: str) -> None:
    with pytest.raises(UsageError, match="write it like 06:00"):
        parse_clock(text)


def test_the_next_six_o_clock_is_tomorrow_s_or_today_s() -> None:
    six = parse_clock("06:00")
    assert next_deadline(six, EVENING, None) == EVENING + 7 * HOUR
    assert next_deadline(six, EVENING + 2 * HOUR, None) == EVENING + 7 * HOUR
    assert next_deadline(six, EVENING + 7 * HOUR, None) == EVENING + 31 * HOUR


def test_a_deadline_belongs_to_its_night() -> None:
    six = parse_clock("6:00")
    night = Night(EVENING, EVENING + 7 * HOUR)
    for hours in (7, 8, 15, 18.9):
        assert next_deadline(six, EVENING + hours * HOUR, night) == night.deadline
    # In the next evening begins another night, also where this one began late.
    for begun in (EVENING, EVENING + 4 * HOUR):
        night = Night(begun, EVENING + 7 * HOUR)
        assert next_deadline(six, EVENING + 19 * HOUR, night) == EVENING + 31 * HOUR
    # A night of more than half a day ends a day after it began, an hour early.
    long = Night(EVENING - 6 * HOUR, EVENING + 7 * HOUR)
    assert next_deadline(six, EVENING + 16.9 * HOUR, long) == long.deadline
    assert next_deadline(six, EVENING + 17 * HOUR, long) == EVENING + 31 * HOUR
    # Who asks for another time means another night.
    assert next_deadline(time(9), EVENING + 8 * HOUR, night) == EVENING + 10 * HOUR


def test_the_night_in_which_clocks_change_is_no_exception(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time_zone.tzset()
    try:
        for day in (datetime(2026, 3, 7), datetime(2026, 10, 31)):  # noqa: DTZ001 - local
            # A job of every day at 17:00:02; the day after it starts a second earlier.
            begun = (day + timedelta(hours=17, seconds=2)).timestamp()
            now = (day + timedelta(hours=41, seconds=1)).timestamp()
            due = next_deadline(parse_clock("06:00"), begun, None)
            assert due == (day + timedelta(hours=30)).timestamp()
            night = Night(begun, due)
            assert next_deadline(parse_clock("06:00"), due + HOUR, night) == due
            later = (day + timedelta(hours=54)).timestamp()
            assert next_deadline(parse_clock("06:00"), now, night) == later
        # 02:30 is left out that night, and still the deadline of it.
        skipped = (datetime(2026, 3, 8) + timedelta(hours=3, minutes=30)).timestamp()  # noqa: DTZ001
        night = Night(skipped - HOUR, skipped)
        assert next_deadline(parse_clock("02:30"), skipped + HOUR, night) == skipped
    finally:
        monkeypatch.undo()
        time_zone.tzset()


@given(
    st.floats(0, 2e9),
    st.times(timezones=st.none()).map(lambda at: at.replace(second=0, microsecond=0)),
)
def test_a_new_night_s_deadline_is_ahead_and_at_its_time(now: float, clock: time) -> None:
    due = next_deadline(clock, now, None)
    assert now < due <= now + timedelta(days=1, hours=2).total_seconds()
    local = datetime.fromtimestamp(due, UTC).astimezone()
    assert (local.hour, local.minute) == (clock.hour, clock.minute) or local.utcoffset()


def test_without_an_end_there_is_always_room(clock: Time) -> None:
    pace = Pace(None)
    pace.finish(pace.start())
    clock.now += 1e9
    assert pace.left is None
    assert pace.has_room
    assert not pace.misses(10**9)


def test_no_query_starts_that_can_not_be_finished(clock: Time) -> None:
    pace = Pace(100)
    for _ in range(20):
        started = pace.start()
        clock.now += 4
        pace.finish(started)
    # 20 s are left: steady queries of 4 s fit until hardly more than 4 s are left.
    assert pace.left == 20
    assert pace.has_room
    clock.now += 15
    assert pace.has_room
    clock.now += 1.5
    assert not pace.has_room


def test_a_server_that_slows_down_is_noticed(clock: Time) -> None:
    pace = Pace(1000)
    for seconds in (1, 1, 1, 1, 20, 20, 20):
        started = pace.start()
        clock.now += seconds
        pace.finish(started)
    clock.now = 2000.0 - 15
    assert pace.left == 15
    assert not pace.has_room


def test_nothing_is_known_before_the_first_query_but_that_the_time_is_up(clock: Time) -> None:
    pace = Pace(5)
    assert pace.has_room
    clock.now += 5
    assert not pace.has_room
    assert not Pace(-3600).has_room


def test_a_job_is_behind_at_the_pace_so_far(clock: Time) -> None:
    pace = Pace(100)
    for _ in range(10):
        started = pace.start()
        clock.now += 1
        pace.finish(started)
    assert pace.left == 90
    assert not pace.misses(90)
    assert pace.misses(91)


def test_a_clock_that_is_paused_stands_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much time passes between two looks at it: 0 s left are no room for a query."""
    ticks = count(1000.1, 0.7)
    monkeypatch.setattr(MONOTONIC, ticks.__next__)
    clock = WorkClock()
    clock.pause()
    pace = Pace(0.0, clock)
    assert (pace.left, pace.has_room) == (0.0, False)
    clock.pause()
    assert (pace.left, pace.has_room) == (0.0, False)
    clock.resume()
    assert not pace.has_room
