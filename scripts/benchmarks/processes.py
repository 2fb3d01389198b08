"""Servers and clients as processes of their own, and what those took."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
_LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Used:
    """What a process took from its start to its end; `megabytes` is the most it held."""

    seconds: float
    cpu: float
    megabytes: float


@contextmanager
def server(script: str, *arguments: str) -> Iterator[str]:
    """Run `scripts/SCRIPT` until the context is left; yields the address it prints."""
    command = [sys.executable, str(ROOT / "scripts" / script), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            said = process.stdout.readline().split()
            if not said:
                raise SystemExit(f"no server: {' '.join(command)}")
            yield said[-1]
        finally:
            process.terminate()


def batchrank(*arguments: str) -> list[str]:
    """The command line of batchrank with these arguments."""
    return [sys.executable, "-m", "batchrank", *arguments]


def run(command: Sequence[str], look: Callable[[int], None] | None = None) -> Used:
    """Run a command to its end; SystemExit with what it said where it fails.

    `look` is called with the process's number twice a second, from another thread.
    """
    started = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=said) as process:
            with _looking(process.pid, look):
                _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - started
        if process.returncode != 0:
            said.seek(0)
            why = said.read().decode(errors="replace")
            raise SystemExit(f"exit {process.returncode}: {' '.join(command)}\n{why}")
    return Used(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


@contextmanager
def _looking(process: int, look: Callable[[int], None] | None) -> Iterator[None]:
    if look is None:
        yield
        return
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(_LOOK_SECONDS):
            look(process)

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def megabytes_of(process: int) -> float:
    """The memory that a process holds now (Linux); OSError where it is gone."""
    pages = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20
