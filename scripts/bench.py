"""Measures batchrank beside a bare client that makes the same calls, against one slot server.

    python scripts/bench.py                 # 3 runs of 400 queries on 16 slots of 50 ms
    python scripts/bench.py --runs 1 --queries 100

What counts is the ratio of two measurements of one run: machines differ and are noisy.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CALL_SECONDS = 0.05
SLOTS = 16
CANDIDATES = 100
WORDS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Measured:
    """Calls a second between the first and the last window, and CPU seconds of the client."""

    calls: int
    rate: float
    cpu: float

    @property
    def slot_use(self) -> float:
        """The share of the server's time that was used."""
        return self.rate * CALL_SECONDS / SLOTS


def make_input(path: Path, queries: int) -> None:
    """Write made-up queries; documents of about 800 characters give prompts of 16 KB."""
    rng = random.Random(7)
    words = ["".join(rng.choices(WORDS, k=rng.randint(2, 9))) for _ in range(5000)]
    with path.open("w") as file:
        for number in range(queries):
            candidates = [
                {
                    "docid": f"q{number}-d{place}",
                    "score": float(CANDIDATES - place),
                    "doc": {"text": " ".join(rng.choices(words, k=125))},
                }
                for place in range(CANDIDATES)
            ]
            query = {"qid": f"q{number}", "text": " ".join(rng.choices(words, k=6))}
            file.write(json.dumps({"query": query, "candidates": candidates}) + "\n")


@contextmanager
def judge(log: Path) -> Iterator[str]:
    """A judge server with slots in a process of its own; yields its address."""
    command = [sys.executable, str(ROOT / "scripts" / "judge_server.py"), "--kind", "llama.cpp"]
    command += ["--slots", str(SLOTS), "--call-seconds", str(CALL_SECONDS)]
    command += ["--context", "16384", "--log", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


def measure(folder: Path, command: list[str]) -> Measured:
    """Run `command` (URL and STORE put in) against a judge of its own; read what that saw."""
    log = folder / f"{time.monotonic_ns()}.log"
    with judge(log) as url:
        names = {"URL": url, "STORE": str(log.with_suffix(".sqlite"))}
        with subprocess.Popen(
            [names.get(part, part) for part in command], stderr=subprocess.DEVNULL
        ) as process:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise SystemExit(f"exit {process.returncode}: {' '.join(command)}")
    calls = [json.loads(line) for line in log.read_text().splitlines()]
    times = sorted(call["time"] for call in calls if call["purpose"] == "window")
    # The preflight's calls come before the first window's, and the first 2% find empty slots.
    skipped = len(times) // 50
    rate = (len(times) - 1 - skipped) / (times[-1] - times[skipped])
    return Measured(len(times), rate, used.ru_utime + used.ru_stime)


def compare(folder: Path, queries: int) -> dict[str, float]:
    """One run of each, in turn, and the ratios; CPU a call is that of more calls beyond few."""
    in_flight = str(SLOTS + SLOTS // 4)
    found = {}
    for name, count in (("few", max(10, queries // 8)), ("all", queries)):
        source = folder / f"{name}.jsonl"
        if not source.exists():
            make_input(source, count)
        bare = [sys.executable, str(ROOT / "scripts" / "bare_client.py")]
        run = [sys.executable, "-m", "batchrank", "run", str(source), "--base-url", "URL"]
        run += ["--store", "STORE", "-o", os.devnull]
        found[f"bare {name}"] = measure(folder, [*bare, "URL", str(source), in_flight])
        found[f"batchrank {name}"] = measure(folder, run)
    cpu = {
        name: (found[f"{name} all"].cpu - found[f"{name} few"].cpu)
        / (found[f"{name} all"].calls - found[f"{name} few"].calls)
        for name in ("bare", "batchrank")
    }
    return {
        "bare calls/s": found["bare all"].rate,
        "batchrank calls/s": found["batchrank all"].rate,
        "rate, batchrank / bare": found["batchrank all"].rate / found["bare all"].rate,
        "slot use, bare": found["bare all"].slot_use,
        "slot use, batchrank": found["batchrank all"].slot_use,
        "CPU µs a call, bare": cpu["bare"] * 1e6,
        "CPU µs a call, batchrank": cpu["batchrank"] * 1e6,
        "CPU, batchrank / bare": cpu["batchrank"] / cpu["bare"],
    }


def main() -> None:
    """Print the median, least and largest of each figure over the runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--queries", type=int, default=400)
    arguments = parser.parse_args()
    print(
        f"{arguments.queries} queries x {CANDIDATES}, {SLOTS} slots x {CALL_SECONDS * 1000:.0f} ms"
    )
    with tempfile.TemporaryDirectory() as folder:
        runs = [compare(Path(folder), arguments.queries) for _ in range(arguments.runs)]
    print(f"{'':32}{'median':>10}{'min':>10}{'max':>10}")
    for name in runs[0]:
        figures = [run[name] for run in runs]
        median = statistics.median(figures)
        print(f"{name:32}{median:>10.3f}{min(figures):>10.3f}{max(figures):>10.3f}")


if __name__ == "__main__":
    main()
