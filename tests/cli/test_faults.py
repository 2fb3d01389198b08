"""Faults of this machine: full and read-only disks, signals, locks, descriptors, broken stores."""

from __future__ import annotations

import errno
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import orjson
import pytest

from batchrank.progress.status import read_status
from batchrank.store.lock import store_lock
from scripts.judge import JudgeServer
from tests.cli.conftest import Shell
from tests.cli.running import (
    Row,
    batchrank,
    judge,
    requests,
    rows_of,
    serving,
    windows,
    written,
)
from tests.conftest import missing
from tests.waiting import PATIENCE, until

Mount = Callable[[str], Path]


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    """Mounts a tmpfs with the given options; a second call changes the options of the first."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = False

    def call(options: str) -> Path:
        nonlocal mounted
        how = f"remount,{options}" if mounted else options
        command = ["mount", "-t", "tmpfs", "-o", how, "tmpfs", str(disk)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            missing("the right to mount", "run the tests as root, outside of a locked container")
        mounted = True
        return disk

    yield call
    if mounted:
        subprocess.run(["umount", "-l", disk], check=True)


def test_a_full_disk_under_the_store_loses_nothing(
    mount: Mount, server: JudgeServer, source: Path, rows: list[Row], tmp_path: Path
) -> None:
    disk = mount("size=240k")
    # Texts that need more room than there is.
    many = written(tmp_path / "many.jsonl", requests(queries=400, candidates=2))
    shell = Shell(disk, server.url)
    full = shell.run(many, "-o", tmp_path / "out.jsonl")
    assert full.code == 1, full.err
    assert "free space on its disk and run the same command again; nothing is lost" in full.err
    assert "Traceback" not in full.err
    asked = set(windows(server))
    # The store has no room for how the run ended; its last snapshot, and the summary, tell it.
    for room in ("size=240k", "size=20m"):
        mount(room)
        ended = shell.look("status")
        assert ", begun " in ended.out.decode()
        assert ": failed (exit 1) after " in ended.out.decode()
        assert "free space on its disk" in ended.out.decode()
        found = shell.look("status", "--json").json
        assert (found["exit"], found["ended"] >= found["started"]) == (1, True)
    told = orjson.loads((tmp_path / "out.jsonl.summary.json").read_bytes())
    assert told["exit_code"] == 1
    assert "free space on its disk" in told["reasons"][0]
    with closing(sqlite3.connect(shell.store)) as store:
        assert store.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        (kept,) = store.execute("SELECT count(*) FROM answers").fetchone()
    went_on = shell.run(many, "-o", tmp_path / "out.jsonl", "--json")
    assert went_on.code == 0, went_on.err
    assert went_on.json["calls"] == 400 - kept
    assert asked
    assert len(rows_of(tmp_path / "out.jsonl")) == 400


def test_a_full_disk_under_the_output_keeps_the_old_one(
    mount: Mount, shell: Shell, source: Path, server: JudgeServer
) -> None:
    disk = mount("size=4k")
    output = disk / "out.jsonl"
    output.write_text("yesterday\n")
    full = shell.run(source, "-o", output)
    assert full.code == 1, full.err
    assert "free space on its disk" in full.err
    assert "Traceback" not in full.err
    assert output.read_text() == "yesterday\n"
    assert [path.name for path in disk.iterdir()] == ["out.jsonl"]
    asked = len(server.calls)
    mount("size=1m")
    assert shell.run(source, "-o", output).code == 0
    assert len(rows_of(output)) == 3
    assert len(server.calls) == asked


def test_read_only_folders_are_said_before_the_night(
    mount: Mount, shell: Shell, source: Path, server: JudgeServer
) -> None:
    disk = mount("ro")
    refused = shell.run(source, "-o", disk / "out.jsonl")
    assert refused.code == 2
    assert "make its folder writable" in refused.err
    refused = Shell(disk, server.url).run(source, "-o", shell.folder / "out.jsonl")
    assert refused.code == 1
    assert "choose another store" in refused.err
    assert server.calls == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_run_that_waits_for_a_silent_pipe(
    server: JudgeServer, tmp_path: Path, rows: list[Row], number: signal.Signals
) -> None:
    store = tmp_path / "store.sqlite"
    command = [sys.executable, "-m", "batchrank", "run", "-", "-o", str(tmp_path / "out.jsonl")]
    command += ["--store", str(store), "--base-url", server.url]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        until(lambda: (status := read_status(store)) and status.state == "ranking")
        process.send_signal(number)
        # The pipe stays open and silent: only the signal can end this.
        assert process.wait(timeout=PATIENCE) == 75
        assert process.stderr is not None
        said = process.stderr.read().decode()
    assert f"stopped: {number.name} received" in said
    assert "Traceback" not in said
    assert "Fatal" not in said


def test_a_named_pipe_is_read_once_and_whole(shell: Shell, source: Path, tmp_path: Path) -> None:
    with subprocess.Popen(["cat", source], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        pipe = f"/dev/fd/{process.stdout.fileno()}"
        found = shell.run(pipe, "-o", tmp_path / "out.jsonl")
    assert found.code == 0, found.err
    assert len(rows_of(tmp_path / "out.jsonl")) == 3


def test_who_waits_for_the_lock_takes_the_finished_result(
    shell: Shell, source: Path, server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shell.run(source).code == 0
    asked = len(server.calls)
    output = shell.folder / "in.ranked.jsonl"
    output.unlink()
    holder = store_lock(shell.store)
    holder.__enter__()
    tries = []

    def lock(path: Path) -> object:
        tries.append(path)
        if len(tries) == 3:
            holder.__exit__(None, None, None)
        return store_lock(path)

    monkeypatch.setattr("batchrank.running.night.store_lock", lock)
    monkeypatch.setattr("batchrank.running.night._LOCK_SECONDS", 0)
    found = shell.run(source, "--wait-for-lock")
    assert found.code == 0, found.err
    assert len(tries) == 3
    assert found.err.count("waiting: store") == 1
    assert len(server.calls) == asked
    assert len(rows_of(output)) == 3


@pytest.mark.parametrize("limit", [10, 14, 20])
def test_too_few_descriptors_are_told_with_the_remedy(
    source: Path, tmp_path: Path, limit: int
) -> None:
    starved = subprocess.run(
        [sys.executable, "-m", "batchrank", "run", source, "--store", tmp_path / "s.sqlite"],
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_NOFILE, (limit, limit)),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (starved.returncode, len(starved.stderr.splitlines())) == (1, 1), starved.stderr
    assert "ulimit -n" in starved.stderr


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE])
@pytest.mark.parametrize("place", ["formats.opening.Path.open", "store.lock.os.open"])
def test_wherever_descriptors_run_out_the_remedy_is_told(
    shell: Shell, source: Path, monkeypatch: pytest.MonkeyPatch, place: str, error: int
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(error, "Too many open files", str(source))

    monkeypatch.setattr(f"batchrank.{place}", full)
    ended = shell.run(source)
    assert ended.code == 1
    assert ended.err.startswith("batchrank: error: this process may open no more files: raise")


def test_out_of_descriptors_is_no_crash(shell: Shell, source: Path, tmp_path: Path) -> None:
    rows = requests(queries=20, candidates=40)
    many = written(tmp_path / "many.jsonl", rows)
    with serving(judge(rows, call_seconds=0.05)) as server:
        arguments = ["run", str(many), "--store", str(shell.store), "--base-url", server.url]
        arguments += ["--concurrency", "64"]
        starved = subprocess.run(
            [sys.executable, "-m", "batchrank", *arguments],
            preexec_fn=partial(resource.setrlimit, resource.RLIMIT_NOFILE, (40, 40)),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert starved.returncode in (0, 1, 4, 75), starved.stderr
        assert "Traceback" not in starved.stderr
        assert batchrank(*arguments).code == 0
        # What was answered under want is not asked again in plenty.
        answered = [call.body for call in server.calls if call.purpose == "window"]
        assert len(set(answered)) == 20 * 3


def damaged_copy(store: Path, target: Path) -> Path:
    """The store as a killed writer would leave it, and a page in its middle overwritten."""
    with closing(sqlite3.connect(store)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE IF NOT EXISTS scratch (x)")
        writer.commit()
        for end in ("", "-wal"):
            shutil.copy(f"{store}{end}", f"{target}{end}")
    with target.open("r+b") as file:
        file.seek(4096 * 3)
        file.write(b"\x00\xff" * 8192)
    return target


def test_a_corrupt_store_is_found_before_the_night(
    shell: Shell, source: Path, server: JudgeServer, tmp_path: Path
) -> None:
    assert shell.run(source).code == 0
    broken = tmp_path / "broken"
    broken.mkdir()
    damaged_copy(shell.store, broken / "store.sqlite")
    asked = len(server.calls)
    refused = Shell(broken, server.url).run(source)
    assert refused.code == 1, refused.err
    assert "restore a backup" in refused.err
    assert "Traceback" not in refused.err
    assert len(server.calls) == asked


def test_a_wall_clock_that_jumps_changes_nothing(
    shell: Shell, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter(range(2_000_000_000, 0, -3600))
    monkeypatch.setattr("time.time", lambda: float(next(times)))
    found = shell.run(source, "--json", "--time-limit", "1h")
    assert found.code == 0, found.err
    assert 0 <= found.json["seconds"] < 60
    said = shell.look("status")
    assert said.code == 0
    assert "after -" not in said.out.decode()


def test_a_backup_can_be_made_while_a_run_is_on(
    shell: Shell, source: Path, server: JudgeServer, tmp_path: Path
) -> None:
    assert shell.run(source).code == 0
    copy = tmp_path / "copies" / "store.sqlite"
    copy.parent.mkdir()
    with closing(sqlite3.connect(shell.store)) as writer:
        writer.execute("BEGIN IMMEDIATE")  # as a runner in the midst of a commit
        writer.execute("DELETE FROM answers")
        made = shell.look("backup", copy)
        assert made.code == 0, made.err
    assert copy.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in copy.parent.iterdir()] == ["store.sqlite"]
    asked = len(server.calls)
    (tmp_path / "in.ranked.jsonl").unlink()
    assert Shell(copy.parent, server.url).run(source).code == 0
    assert len(rows_of(tmp_path / "in.ranked.jsonl")) == 3
    assert len(server.calls) == asked

    again = shell.look("backup", copy)
    assert again.code == 2
    assert "is there already" in again.err
    assert batchrank("backup", tmp_path / "x", "--store", tmp_path / "none").code == 2
