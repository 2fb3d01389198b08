"""`batchrank watch`: a board or lines while a run is on, how it ended, and a clean way out."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from batchrank.cli.display.board import board, sparkline
from batchrank.progress.snapshot import Snapshot
from batchrank.progress.status import write_status
from batchrank.store.lock import store_lock
from tests.cli.conftest import Shell
from tests.cli.running import Result, batchrank
from tests.snapshots import GPU1, SNAPSHOT

Pause = Callable[[], None]


@pytest.fixture
def store(shell: Shell, source: Path) -> Path:
    """The store of a finished run."""
    assert shell.run(source).code == 0
    return shell.store


class Watched:
    """A store that is locked until it is let go; each pause of `watch` takes the next of `acts`."""

    def __init__(self, store: Path, lock: ExitStack) -> None:
        self.store = store
        self.lock = lock
        self.acts: list[Pause] = []

    def pause(self, seconds: float) -> None:
        assert seconds > 0
        self.acts.pop(0)()

    def tell(self, snapshot: Snapshot) -> None:
        write_status(self.store, snapshot)

    def watch(self, **env: str) -> Result:
        return batchrank("watch", self.store, env=env)


@pytest.fixture
def watched(store: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    with ExitStack() as lock:
        lock.enter_context(store_lock(store))
        found = Watched(store, lock)
        monkeypatch.setattr("batchrank.cli.commands.watch.sleep", found.pause)
        yield found
        assert found.acts == []


def interrupt() -> None:
    raise KeyboardInterrupt


def test_lines_until_the_end(watched: Watched) -> None:
    def end() -> None:
        watched.tell(replace(SNAPSHOT, exit_code=75, state="ended", reasons=("SIGTERM\x1b[31m",)))
        watched.lock.close()

    watched.acts = [lambda: watched.tell(SNAPSHOT), end]
    said = watched.watch()
    assert (said.code, said.err) == (75, "")
    assert said.out.decode().splitlines() == [
        "starting",  # the status file still tells the end of the run before
        "ranking: 300 of 400 queries · 30 s left · 16/20 in flight · 85% by the deadline"
        " · 1 server well, 1 resting · 1,000 windows, 5.0% fallback · 2,000+100 tokens/s",
        "ended with exit code 75 after 1 min 0 s; SIGTERM\\x1b[31m",
    ]


def test_a_run_that_is_killed_says_no_more(watched: Watched) -> None:
    watched.tell(SNAPSHOT)
    watched.acts = [watched.lock.close]
    said = watched.watch()
    assert said.code == 1
    assert "ended without a word while ranking (killed)" in said.out.decode()


@pytest.mark.parametrize("env", [{}, {"TTY_COMPATIBLE": "1"}])
def test_ctrl_c_leaves_cleanly(watched: Watched, env: dict[str, str]) -> None:
    watched.tell(SNAPSHOT)
    watched.acts = [interrupt]
    said = watched.watch(**env)
    assert (said.code, said.err) == (0, "")
    assert "300 of 400 queries" in said.out.decode()
    assert ("gpu1:8000" in said.out.decode()) is bool(env)


def test_where_no_run_is_on_it_says_how_the_last_ended(store: Path) -> None:
    said = batchrank("watch", store)
    assert said.code == 0
    assert said.out.decode().startswith("no run is on; the last one:\nrun 1 of ")
    assert "complete (exit 0)" in said.out.decode()


def test_a_store_that_is_not_there(tmp_path: Path) -> None:
    said = batchrank("watch", tmp_path / "none.sqlite")
    assert said.code == 2
    assert "there is no store" in said.err
    assert list(tmp_path.iterdir()) == []


def shown(snapshot: Snapshot, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    console.print(board(snapshot))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_board_shows_all_of_a_run() -> None:
    text = shown(SNAPSHOT)
    assert max(map(len, text.splitlines())) <= 80
    for said in (
        "75.0%",
        "30 s left",
        "16.7 calls/s",
        "16 of 20 in flight",
        f"{GPU1}",
        "12.3",
        "resting",
        "max_fallback 5.0% of 5.0% passed so far",
        "q2  why is the sky blue",
        "3→1 1→2 40→3 2→4 55→5",
    ):
        assert said in text


def test_a_board_of_a_run_that_has_hardly_begun() -> None:
    early = Snapshot("0.1", 1, 0.0, "s.sqlite", "in.jsonl", "out.jsonl", 0.0, 0.0)
    assert "no model yet" in shown(early)


def test_what_others_wrote_is_shown_as_it_is() -> None:
    hostile = "[red]\x1b[2J</red> q"
    (first, *_) = SNAPSHOT.recent
    text = shown(replace(SNAPSHOT, recent=(replace(first, qid=hostile),), waits=hostile))
    assert "[red]\\x1b[2J</red> q" in text
    assert "\x1b" not in text


def test_a_sparkline_is_as_high_as_its_highest() -> None:
    assert sparkline([0.0, 1.0, 2.0, 4.0, 8.0]) == "▁▂▃▅█"
    assert sparkline([0.0, 0.0]) == sparkline([]) == ""
    assert len(sparkline([1.0] * 500)) == 60
