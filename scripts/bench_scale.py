"""Measures what grows with the number of queries: memory, the store, going on with known work.

    python scripts/bench_scale.py                       # 1,000 against 100,000 queries
    python scripts/bench_scale.py --few 1000 --many 20000

Queries have 50 candidates of 200 bytes: 3 segments and a merge. The server is `null_server.py`, so
that nothing is measured but the client. What counts are ratios of one run; machines differ.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from sqlite3 import connect

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from batchrank.formats.lines import read_lines
from batchrank.keys import line_digest

ROOT = Path(__file__).resolve().parent.parent
CANDIDATES = 50
TEXT_BYTES = 200


@dataclass(frozen=True, slots=True)
class Scale:
    """One size: memory is the most of the process; seconds are those of whole processes.

    `resumed` is a second run over the same input, `read` what reading and hashing it takes, and
    `start` what a process takes that does nothing.
    """

    queries: int
    megabytes: float
    seconds: float
    windows: int
    store_bytes: int
    resumed: float
    resumed_megabytes: float
    read: float
    start: float

    @property
    def resume_ratio(self) -> float:
        """Going on with finished work, in times of reading and hashing it, imports apart."""
        return (self.resumed - self.start) / self.read


def make_input(path: Path, queries: int) -> None:
    """Write made-up queries; texts are cut from one long text, so that it takes no time."""
    rng = random.Random(7)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ("".join(rng.choices(letters, k=rng.randint(2, 9))) for _ in range(50_000))
    text = " ".join(words)
    last = len(text) - TEXT_BYTES
    with path.open("w") as file:
        for number in range(queries):
            candidates = [
                {
                    "docid": f"d{rng.randrange(10**7)}-{place}",
                    "score": CANDIDATES - place / 2,
                    "doc": {"text": text[start : start + TEXT_BYTES]},
                }
                for place in range(CANDIDATES)
                for start in (rng.randrange(last),)
            ]
            start = rng.randrange(last)
            query = {"qid": f"q{number}", "text": text[start : start + 40]}
            file.write(json.dumps({"query": query, "candidates": candidates}) + "\n")


@contextmanager
def null_server() -> Iterator[str]:
    """The server in a process of its own; yields its address."""
    command = [sys.executable, str(ROOT / "scripts" / "null_server.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


def timed(command: Sequence[str]) -> tuple[float, float]:
    """Run batchrank; its seconds and its most megabytes."""
    started = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "batchrank", *command],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr is not None
        said = process.stderr.read().decode()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"exit {process.returncode}: {said}")
    return time.perf_counter() - started, used.ru_maxrss / 1024


def seconds_to_read(path: Path) -> float:
    """What reading and hashing every line takes."""
    started = time.perf_counter()
    for block in read_lines(str(path)):
        for line in block:
            line_digest(line.data)
    return time.perf_counter() - started


def measure(folder: Path, queries: int) -> Scale:
    """Rank so many queries, and go on with them."""
    source = folder / f"{queries}.jsonl"
    make_input(source, queries)
    store = folder / f"{queries}.sqlite"
    with null_server() as url:
        command = ["run", str(source), "--store", str(store), "--base-url", url]
        seconds, megabytes = timed(command)
        resumed, resumed_megabytes = timed(command)
    with closing(connect(store)) as database:
        ((windows,),) = database.execute("SELECT sum(ok) FROM rankings").fetchall()
    scale = Scale(
        queries=queries,
        megabytes=megabytes,
        seconds=seconds,
        windows=windows,
        store_bytes=store.stat().st_size,
        resumed=resumed,
        resumed_megabytes=resumed_megabytes,
        read=seconds_to_read(source),
        start=timed(["--version"])[0],
    )
    source.unlink()
    return scale


def main() -> None:
    """Print a row for each size and the ratios between the two."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--few", type=int, default=1000)
    parser.add_argument("--many", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="where 13 KB a query have room")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        scales = [measure(Path(folder), count) for count in (arguments.few, arguments.many)]
    if arguments.json:
        print(json.dumps([asdict(scale) for scale in scales], indent=2))
        return
    print("| queries | windows/s | MB | store, KB a query | resumed, MB | resumed / read |")
    print("|--:|--:|--:|--:|--:|--:|")
    for one in scales:
        print(
            f"| {one.queries:,} | {one.windows / (one.seconds - one.start):,.0f} "
            f"| {one.megabytes:.0f} | {one.store_bytes / one.queries / 1000:.2f} "
            f"| {one.resumed_megabytes:.0f} | {one.resumed - one.start:.1f} s / {one.read:.1f} s "
            f"= {one.resume_ratio:.2f} |"
        )
    few, many = scales
    print(f"memory, many / few: {many.megabytes / few.megabytes:.3f}")


if __name__ == "__main__":
    main()
