"""What a run says while it works where nobody watches: one line a minute, all on stderr."""

from __future__ import annotations

from dataclasses import replace

import pytest

from batchrank.cli.talk import Talk
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
        "batchrank: ranking: 300 of 400 queries · 1,000 windows, 5.0% fallback · 2,000+100 tokens/s"
        " · 16/20 in flight · 30 s left · 85% by the deadline"
    )


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
