"""Quiet hours and deadlines as a user of the command line meets them, in a time of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import orjson
import pytest

from batchrank.clock import SystemClock
from batchrank.progress.status import read_status
from scripts.judge import JudgeServer
from tests.cli.conftest import Shell
from tests.cli.running import batchrank, rows_of, started, windows, written
from tests.waiting import PATIENCE

QUIET = ("--quiet-hours", "08:00-20:00")


def at(text: str) -> float:
    """A local time of 30 November 2026, a Monday; `+` is the day after."""
    day = "2026-12-01" if text.startswith("+") else "2026-11-30"
    return datetime.fromisoformat(f"{day}T{text.lstrip('+')}").timestamp()


class Wall:
    """The time of day, which a wait moves on, but not beyond `until`."""

    def __init__(self) -> None:
        self.now = at("19:00")
        self.until = at("20:00")
        self.look: Callable[[], None] = lambda: None
        """Called before time moves on."""
        self._sleepers: list[float] = []
        self._looks = False  # one at a time: a command takes over the standard streams

    async def sleep(self, seconds: float) -> None:
        """Stands for `SystemClock.sleep`."""
        if self.now >= self.until:
            await asyncio.sleep(60)
            raise TimeoutError("a run waits for a time that does not come")
        due = min(self.now + seconds, self.until)
        self._sleepers.append(due)
        try:
            while self.now < due:
                await asyncio.sleep(0.001)
                if self.now < due == min(self._sleepers) and not self._looks:
                    self._looks = True
                    try:
                        await asyncio.to_thread(self.look)
                    finally:
                        self._looks = False
                        self.now = due
        finally:
            self._sleepers.remove(due)


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> Wall:
    """Monday 19:00."""
    found = Wall()
    monkeypatch.setattr(SystemClock, "wall", lambda _clock: found.now)
    monkeypatch.setattr(SystemClock, "sleep", found.sleep)
    monkeypatch.setattr("batchrank.running.ticking._TICK_SECONDS", 0.001)
    return found


def test_a_run_waits_for_the_end_of_the_hours_and_says_so_everywhere(
    shell: Shell, source: Path, server: JudgeServer, wall: Wall
) -> None:
    seen: list[str] = []

    def look() -> None:
        assert server.calls == []
        if wall.now >= at("19:50") and not seen:
            with started("status", "--store", shell.store, cwd=shell.folder) as other:
                seen.append(other.communicate(timeout=PATIENCE)[0])
            told = read_status(shell.store)
            assert told is not None
            assert told.waits == "quiet hours until 20:00"
            assert told.quiet_until == at("20:00")

    wall.look = look
    found = shell.run(source, *QUIET, "--json")
    assert found.code == 0, found.err
    assert wall.now == at("20:00")
    lines = found.err.splitlines()
    assert lines[0] == "batchrank: quiet hours until 20:00: nothing is sent before"
    assert found.err.count("quiet hours until") == 1
    assert "batchrank: the quiet hours are over" in lines
    assert "quiet_seconds" in found.json
    assert "): quiet hours until 20:00, 0 queries finished" in seen[0]


def test_structured_logs_tell_of_the_wait(shell: Shell, source: Path, wall: Wall) -> None:
    found = shell.run(source, *QUIET, "--log-format", "json")
    assert found.code == 0
    events = [orjson.loads(line)["event"] for line in found.err.splitlines()]
    assert events[0] == "quiet hours until 20:00: nothing is sent before"
    assert "the quiet hours are over" in events


def test_a_server_that_is_known_is_not_asked_either(
    shell: Shell, source: Path, server: JudgeServer, wall: Wall
) -> None:
    assert shell.run(source, "--limit", "1").code == 0
    asked = len(server.calls)
    wall.now = at("19:00")

    def look() -> None:
        assert len(server.calls) == asked

    wall.look = look
    assert shell.run(source, *QUIET).code == 0
    # What needs no call does not wait.
    wall.now = wall.until = at("19:00")
    (shell.folder / "in.ranked.jsonl").unlink()
    again = shell.run(source, *QUIET)
    assert again.code == 0, again.err
    assert len(rows_of(shell.folder / "in.ranked.jsonl")) == 3


@pytest.mark.parametrize("command", ["diagnose", "tune", "label", "compare"])
def test_trials_wait_in_sight(
    source: Path, server: JudgeServer, wall: Wall, tmp_path: Path, command: str
) -> None:
    job = tmp_path / "job.toml"
    job.write_text('quiet_hours = "08:00-20:00"\nwindow_size = 6\n')
    qrels = tmp_path / "qrels"
    qrels.write_text("".join(f"q{n} 0 q{n}-d1 1\n" for n in (1, 2, 3)))
    grid = tmp_path / "grid.toml"
    grid.write_text("[[try]]\ndepth = 8\n")
    store, written_to = ("--store", tmp_path / "trials"), ("-o", tmp_path / "result")
    arguments = {
        "diagnose": (source, *store),
        "tune": (source, "--qrels", qrels, "--grid", grid, *store, *written_to),
        "label": (source, *store, *written_to),
        "compare": (source, source, "--noise", source),
    }[command]

    def look() -> None:
        assert server.calls == []

    wall.look = look
    found = batchrank(command, *arguments, "--job", job, "--base-url", server.url)
    assert "batchrank: quiet hours until 20:00: nothing is sent before" in found.err
    assert found.code in (0, 3), found.err
    assert (wall.now, bool(server.calls)) == (at("20:00"), True)


def test_doctor_does_not_wait(source: Path, server: JudgeServer, wall: Wall) -> None:
    wall.until = wall.now
    found = batchrank("doctor", source, "--base-url", server.url, *QUIET)
    assert (found.code, found.out, server.calls) == (75, b"", [])
    assert len(found.err.splitlines()) == 1
    assert "quiet hours until 20:00: nothing can be asked of a model server before" in found.err
    wall.now = at("20:00")
    assert batchrank("doctor", source, "--base-url", server.url, *QUIET).code == 0


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--deadline", "19:30"), "last beyond --deadline 19:30: nothing can be sent"),
        (("--deadline", "20:00"), "last beyond --deadline 20:00: nothing can be sent"),
        (("--time-limit", "30m"), "last beyond --time-limit 30m: nothing can be sent"),
    ],
)
@pytest.mark.parametrize("known", [False, True])
def test_an_end_within_the_hours_is_said_at_once(
    shell: Shell, source: Path, server: JudgeServer, wall: Wall, flags: tuple[str, ...], said: str,
    known: bool,
) -> None:  # fmt: skip
    if known:
        assert shell.run(source, "--limit", "1").code == 0
    asked = len(server.calls)
    wall.now = wall.until = at("19:00")  # a wait would never end
    found = shell.run(source, *QUIET, *flags)
    assert found.code == 75
    assert f"quiet hours until 20:00 {said} before it" in found.err
    assert len(server.calls) == asked
    logged = shell.run(source, *QUIET, *flags, "--log-format", "json").err.splitlines()
    levels = {orjson.loads(line)["level"] for line in logged}
    assert "warning" in levels
    assert "error" not in levels  # a stop is none
    dry = shell.run(source, *QUIET, *flags, "--dry-run")
    assert "a run would stop at once, with exit code 75 if work is left: quiet hours" in (
        dry.out.decode()
    )


def test_a_deadline_in_the_hours_to_come_ends_the_night_with_them(
    shell: Shell, source: Path, wall: Wall
) -> None:
    wall.now = at("23:00")
    said = "--deadline 09:00 ends within the quiet hours 08:00-20:00: nothing is sent after "
    found = shell.run(source, *QUIET, "--deadline", "09:00")
    assert found.code == 0, found.err
    assert f"warning: {said}Tue 08:00" in found.err
    dry = shell.run(source, *QUIET, "--deadline", "09:00", "--dry-run", "--json").json
    assert said in dry["night"]["note"]
    assert dry["night"]["at"] == at("+08:00")
    assert dry["night"]["seconds"] == 9 * 3600


def test_a_dry_run_counts_the_hours_in(
    shell: Shell, source: Path, wall: Wall, monkeypatch: pytest.MonkeyPatch
) -> None:
    wall.now = at("20:00")
    assert shell.run(source, "--limit", "1").code == 0

    tokens = shell.run(source, "--dry-run", "--json").json["prompt_tokens"]

    async def fourteen_hours(_: object) -> float:
        return float(tokens / (14 * 3600))

    monkeypatch.setattr("batchrank.cli.commands.dryrun.last_pace", fourteen_hours)
    wall.now = at("19:00")
    said = shell.run(source, *QUIET, "--dry-run").out.decode()
    assert "about 14 h 0 min" in said
    assert "quiet hours: a run would wait until 20:00" in said
    # Twelve hours until eight, and the other two from 20:00 on.
    assert "with quiet hours it would be done at Tue 22:00" in said
    outlook = shell.run(source, *QUIET, "--dry-run", "--json").json["outlook"]
    assert outlook["hours"] == pytest.approx(14)
    assert outlook["done_at"] == pytest.approx(at("+22:00"))
    # The hours that a deadline leaves are those in which something can be sent.
    within = shell.run(source, *QUIET, "--dry-run", "--json", "--deadline", "18:00").json
    assert within["night"]["refusal"] is not None or within["outlook"]["seconds_left"] <= 12 * 3600
    short = shell.run(source, *QUIET, "--dry-run", "--json", "--deadline", "06:00").json
    assert short["outlook"]["seconds_left"] == 10 * 3600
    assert 0 < short["outlook"]["queries"] < 1


def deadline_of(shell: Shell) -> float | None:
    found: float | None = shell.look("status", "--json").json["deadline"]
    return found


def ended(shell: Shell, source: Path, *flags: object) -> int:
    return shell.run(source, *flags, "--concurrency", "1").code


def test_only_a_deadline_makes_a_night(
    shell: Shell, source: Path, server: JudgeServer, wall: Wall, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A window takes ten minutes.
    monkeypatch.setattr(
        "batchrank.running.pace.monotonic", lambda: len(windows(server)) * 10 * 60.0
    )
    wall.now = at("23:50")
    assert ended(shell, source, "--time-limit", "10m") == 75
    assert deadline_of(shell) is None
    # That run ended at midnight, which is no deadline that a later run could have missed.
    wall.now = at("+01:00")
    both = ("--deadline", "00:00", "--time-limit", "10m")
    asked = len(windows(server))
    assert ended(shell, source, *both) == 75
    assert len(windows(server)) > asked
    assert deadline_of(shell) == at("+00:00") + 24 * 3600


def test_a_limit_is_not_the_end_of_the_night(
    shell: Shell, source: Path, server: JudgeServer, wall: Wall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "batchrank.running.pace.monotonic", lambda: len(windows(server)) * 10 * 60.0
    )
    both = ("--deadline", "06:00", "--time-limit", "10m")
    wall.now = at("23:00")
    assert ended(shell, source, *both) == 75
    assert deadline_of(shell) == at("+06:00")
    wall.now = at("23:15")
    asked = len(windows(server))
    assert ended(shell, source, *both) == 75
    assert len(windows(server)) > asked, "the same night goes on"
    assert deadline_of(shell) == at("+06:00")

    # A run by hand in between, without a deadline, does not hide the night.
    assert ended(shell, source, "--time-limit", "0s") == 75
    wall.now = at("+06:10")
    asked = len(server.calls)
    found = shell.run(source, *both)
    assert (found.code, len(server.calls)) == (75, asked)
    passed = (
        "--deadline 06:00 of this night has passed; from 18:00 on the same command begins the "
        "next night"
    )
    assert passed in found.err
    dry = shell.run(source, *both, "--dry-run")
    assert passed in dry.out.decode()
    assert "a run would stop at once, with exit code 75" in dry.out.decode()
    examined = batchrank(
        "doctor", source, "--base-url", shell.url, "--window-size", "6", *both, "--json",
        "--job", written(shell.folder / "job.toml", [f'store = "{shell.store}"'.encode()]),
    )  # fmt: skip
    assert examined.code == 0, examined.err
    assert passed in examined.json["night"]["refusal"]

    wall.now = at("+18:00")
    assert ended(shell, source, "--deadline", "06:00") == 0
