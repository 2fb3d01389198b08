"""What a run says while it works where nobody watches: one line a minute, all on stderr."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from batchrank.cli.talk import Talk
from batchrank.progress.counts import Progress
from tests.snapshots import SNAPSHOT


def test_away_from_a_terminal_it_tells_once_a_minute(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Talk() as talk:
        for second in range(300):
            talk.tick(replace(SNAPSHOT, seconds=float(second)))
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert len(lines) == 4  # after 60, 120, 180 and 240 s
    assert lines[0] == (
        "batchrank: ranking: 300 of 400 queries · 30 s left · 16/20 in flight · 85% by the deadline"
        " · 1 server well, 1 resting · 1,000 windows, 5.0% fallback · 2,000+100 tokens/s"
    )


@pytest.mark.parametrize(
    ("columns", "last"),
    [
        (60, "30 s left"),
        (80, "16/20 in flight"),
        (100, "85% by the deadline"),
        (160, "1 resting"),
        (180, "fallback"),
    ],
)
def test_on_a_terminal_what_has_no_room_is_left_out_whole(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    columns: int,
    last: str,
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with Talk() as talk:
        talk.tick(SNAPSHOT)
    lines = Text.from_ansi(capsys.readouterr().err).plain.splitlines()
    told = next(line for line in lines if "300 of 400" in line).rstrip()
    assert len(told) <= columns
    assert told.endswith(last)


def test_it_has_nothing_new_to_say_while_it_waits_for_the_end_of_quiet_hours(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Talk() as talk:
        for second in range(3600):
            until = 1_800_003_000.0 if second < 3000 else None
            talk.tick(replace(SNAPSHOT, seconds=float(second), quiet_until=until))
    assert len(capsys.readouterr().err.splitlines()) == 10


@given(
    blocks=st.lists(st.tuples(st.integers(1, 256), st.integers(1, 9)), min_size=1, max_size=5),
    ahead=st.booleans(),
    slots=st.integers(1, 300),
    data=st.data(),
)
def test_what_is_done_grows_from_0_to_1(
    blocks: list[tuple[int, int]], ahead: bool, slots: int, data: st.DataObject
) -> None:
    """However lines are read ahead, begun and finished, and however long they are."""
    size = sum(lines * length for lines, length in blocks)
    read = left = begun = 0
    progress = Progress(started=0.0)
    told: list[float] = []

    def tell() -> None:
        progress.open, progress.share_read = left + begun, read / size
        progress.keep()
        assert progress.share_done is not None
        assert (progress.seconds_left or 0.0) >= 0
        told.append(progress.share_done)

    for number, (lines, length) in enumerate(blocks):
        progress.lines, read, left = progress.lines + lines, read + lines * length, left + lines
        tell()
        while left + begun and not (ahead and number < len(blocks) - 1):
            new = min(left, slots - begun)
            left, begun = left - new, begun + new
            tell()
            ended = data.draw(st.integers(1, begun))
            begun, progress.finished = begun - ended, progress.finished + ended
            progress.now += ended
            tell()
    assert told == sorted(told)
    assert (told[0], told[-1]) == (0.0, 1.0)


@pytest.mark.parametrize(("known", "finished", "open_"), [(0, 40, 160), (100, 20, 80)])
def test_what_is_left_is_told_by_what_this_run_did(known: int, finished: int, open_: int) -> None:
    """At one query a second: as many seconds as queries, begun or not."""
    progress = Progress(
        started=0.0, now=float(finished), lines=200, known=known, finished=finished, open=open_,
        share_read=1.0,
    )  # fmt: skip
    assert progress.seconds_left == pytest.approx(open_)


def test_quiet_hours_are_no_time_at_work() -> None:
    """Neither what is left nor the pace counts them, but for those that lie ahead."""
    progress = Progress(
        started=0.0, now=3300.0, lines=400, finished=300, open=100, share_read=1.0,
        quiet_seconds=3000.0, quiet_ahead=50.0,
    )  # fmt: skip
    assert progress.seconds_at_work == 300
    assert progress.work_left == pytest.approx(100)
    assert progress.seconds_left == pytest.approx(150)


def test_it_says_nothing_in_a_short_run(capsys: pytest.CaptureFixture[str]) -> None:
    with Talk() as talk:
        for second in range(60):
            talk.tick(replace(SNAPSHOT, seconds=float(second)))
        talk.tick(replace(SNAPSHOT, seconds=60.0, state="ended", exit_code=0))
    assert capsys.readouterr() == ("", "")


def test_a_long_silence_is_followed_by_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with Talk() as talk:
        for second in (1, 600, 601, 602, 659, 660):
            talk.tick(replace(SNAPSHOT, seconds=float(second)))
    assert len(capsys.readouterr().err.splitlines()) == 2
