"""What grows with the number of queries: memory, the store, going on with known work.

Queries have 50 candidates of 200 bytes: 3 segments and a merge. The server is `null_server.py`, so
that nothing is measured but the client.
"""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from batchrank.formats.lines import read_lines
from batchrank.keys import line_digest
from scripts.benchmarks.figures import Curve, Row, figure
from scripts.benchmarks.inputs import make_input
from scripts.benchmarks.processes import ROOT, Used, batchrank, megabytes_of, run, server

FEW, MANY = 1_000, 100_000
CANDIDATES = 50
TEXT_BYTES = 200
WINDOWS = 4
"""A query's: 3 segments and a merge."""
MOST_MEGABYTES = 250
_POLL_SECONDS = 0.02
_START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Night:
    """A job over so many queries, and the same again; `curve` is memory by finished queries."""

    queries: int
    first: Used
    again: Used
    store_bytes: int
    read_seconds: float
    curve: Curve


@dataclass(slots=True)
class _Watch:
    """Notes a process's memory and how many queries its server has seen."""

    url: str
    points: list[tuple[float, float]] = field(default_factory=list)

    def __call__(self, process: int) -> None:
        try:
            self.points.append((stats(self.url)[0] / WINDOWS, megabytes_of(process)))
        except (OSError, IndexError):
            return  # it has just ended


def measure(size: float, folder: Path) -> Row:
    """Nights of 1,000 and of `size` times 100,000 queries, and one that is stopped halfway."""
    few, many = night(folder, FEW), night(folder, max(round(MANY * size), 2 * FEW))
    # What a process takes that has one finished query to go on with: imports, and opening a store.
    start = night(folder, 1).again.seconds
    halfway = seconds_to_first_call(folder, many.queries)
    most = max(few.first.megabytes, many.first.megabytes, many.again.megabytes)
    again = many.again.seconds - start
    return Row(
        "scale",
        f"{few.queries:,} and {many.queries:,} queries × {CANDIDATES}, answered at once",
        (
            figure("memory, MB, the most", most, most=MOST_MEGABYTES),
            figure("memory, many / few", many.first.megabytes / few.first.megabytes, most=1.1),
            figure("store, bytes a query", many.store_bytes / many.queries, most=2048),
            figure("finished, again / reading it", again / many.read_seconds, most=1.5),
            figure("half finished, s to the first call", halfway, most=1.0),
            figure("of these, s of imports and opening", start),
            figure("windows a second", many.queries * WINDOWS / (many.first.seconds - start)),
        ),
        {f"{one.queries:,} queries": one.curve for one in (few, many)},
    )


def night(folder: Path, queries: int) -> Night:
    """Rank so many queries, then go on with them when all are finished."""
    source, store = folder / f"{queries}.jsonl", folder / f"{queries}.sqlite"
    make_input(source, queries, CANDIDATES, TEXT_BYTES)
    with server("null_server.py") as url:
        command = batchrank("run", str(source), "--store", str(store), "--base-url", url)
        watch = _Watch(url)
        first = run(command, watch)
        ranked = stats(url)[0]
        again = run(command)
        if stats(url)[0] != ranked:
            raise SystemExit("a finished job made calls")
    grown = sum(file.stat().st_size for file in folder.glob(f"{store.name}*"))
    return Night(queries, first, again, grown, seconds_to_read(source), tuple(watch.points))


def seconds_to_read(path: Path) -> float:
    """What reading and hashing every line takes."""
    started = time.perf_counter()
    for block in read_lines(str(path)):
        for line in block:
            line_digest(line.data)
    return time.perf_counter() - started


def seconds_to_first_call(folder: Path, queries: int) -> float:
    """From the start of a process to its first call, where half of its lines are finished.

    The first run reads the second half first and is stopped when that is done; the run that goes on
    reads the lines in their order, so that its first line is open work. `queries` is at least 200:
    a pipe is read in blocks of 1 MB.
    """
    source, store = folder / f"{queries}.jsonl", folder / "half.sqlite"
    half = queries // 2
    options = ["--store", str(store), "-o", str(folder / "half.out")]
    with server("null_server.py") as url:
        command = batchrank("run", "-", *options, "--base-url", url)
        with _started(command, stdin=subprocess.PIPE) as process:
            feeding = threading.Thread(target=_feed, args=(process, _first_line_last(source, half)))
            feeding.start()
            while stats(url)[0] < half * WINDOWS:
                time.sleep(_POLL_SECONDS)
            process.send_signal(signal.SIGTERM)
            if process.wait() != 75:
                raise SystemExit(f"exit {process.returncode} where a clean stop was expected")
            feeding.join()
    with server("null_server.py") as url:
        command = batchrank("run", str(source), *options, "--base-url", url)
        began = time.time()
        with _started(command) as process:
            until = began + _START_SECONDS
            while (first := stats(url)[1]) is None and time.time() < until:
                time.sleep(_POLL_SECONDS)
            process.send_signal(signal.SIGTERM)
            process.wait()  # a small job may have ended meanwhile
    if first is None:
        raise SystemExit(f"no call within {_START_SECONDS:g} s")
    return first - began


def stats(url: str) -> tuple[int, float | None]:
    """Windows that the null server has seen, and the time of the first."""
    with urllib.request.urlopen(f"{url}/stats") as response:
        seen = json.load(response)
    return seen["windows"], seen["first"]


def _started(command: list[str], stdin: int | None = None) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, cwd=ROOT, stdin=stdin, stdout=quiet, stderr=quiet)


def _first_line_last(source: Path, half: int) -> Iterator[bytes]:
    """The lines of the second half, those of the first, and of these the first line last."""
    with source.open("rb") as whole:
        yield from islice(whole, half, None)
    with source.open("rb") as whole:
        first = next(whole)
        yield from islice(whole, half - 1)
    yield first


def _feed(process: subprocess.Popen[bytes], lines: Iterator[bytes]) -> None:
    """Write lines, and leave the pipe open, so that there is always more to come."""
    assert process.stdin is not None
    try:
        with process.stdin as pipe:
            pipe.writelines(lines)
            pipe.flush()
            process.wait()
    except BrokenPipeError:
        return  # it was stopped before it had read all
