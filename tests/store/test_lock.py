"""The lock: one runner a store, in this process or another, and free when its process dies."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from batchrank.errors import StoreError
from batchrank.store.lock import is_locked, store_lock

HOLDER = """
import sys
from pathlib import Path
from batchrank.store.lock import store_lock
with store_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_process(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock of the store at `path` until its stdin ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process


def test_a_second_holder_is_told_who_the_first_is(path: Path) -> None:
    with (
        store_lock(path),
        pytest.raises(StoreError, match=f"in use by process {os.getpid()} on "),
        store_lock(path),
    ):
        pytest.fail("two runners hold one store")


def test_the_lock_is_free_again_afterwards(path: Path) -> None:
    with store_lock(path):
        assert is_locked(path)

    assert not is_locked(path)
    with store_lock(path):
        assert is_locked(path)


def test_stores_side_by_side_do_not_share_a_lock(path: Path) -> None:
    with store_lock(path), store_lock(path.with_name("other.sqlite")):
        assert is_locked(path)


def test_the_store_s_own_file_is_not_touched(path: Path) -> None:
    with store_lock(path):
        pass

    assert [file.name for file in path.parent.iterdir()] == ["jobs.sqlite.lock"]
    lock = path.with_name("jobs.sqlite.lock")
    assert stat.S_IMODE(lock.stat().st_mode) == 0o600


def test_asking_whether_it_is_locked_makes_no_file(path: Path) -> None:
    assert not is_locked(path)
    assert list(path.parent.iterdir()) == []


def test_another_process_is_kept_out_and_its_death_frees_the_lock(path: Path) -> None:
    with another_process(path) as process:
        assert is_locked(path)
        with (
            pytest.raises(StoreError, match=f"in use by process {process.pid} on "),
            store_lock(path),
        ):
            pytest.fail("two processes hold one store")
        process.kill()
        process.wait()

    assert not is_locked(path)
    with store_lock(path):
        assert str(os.getpid()) in path.with_name("jobs.sqlite.lock").read_text()


def test_a_folder_that_is_not_there_is_refused(path: Path) -> None:
    with pytest.raises(StoreError, match="its folder can't be written"), store_lock(path / "deep"):
        pytest.fail("locked a store in a folder that is not there")
