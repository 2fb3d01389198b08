"""Measures batchrank beside a bare client that makes the same calls, against servers with slots.

    python scripts/bench.py                                # every case once
    python scripts/bench.py --case 16x50ms --runs 3        # one case; the median of each figure
    python scripts/bench.py --queries 100 --json bench.json

What counts is the ratio of two measurements of one run: machines differ and are noisy.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CANDIDATES = 100
SEGMENTS = 5
"""Windows of the first round of `segmented`; one merge follows."""
WORDS = "abcdefghijklmnopqrstuvwxyz"
FAILURES = ("--error-rate", "0.02", "--errors", "500,reset,html")


@dataclass(frozen=True, slots=True)
class Case:
    """Servers with so many `slots` each, and a job for them.

    `target` is the least ratio of the rates: to a bare client's or, where the latencies spread or
    there are several servers, to what a scheduler without overhead could do.
    """

    slots: tuple[int, ...]
    call_seconds: float
    target: float
    queries: int = 400
    strategy: str = "segmented"
    sigma: float = 0.0
    judge: tuple[str, ...] = ()

    @property
    def all_slots(self) -> int:
        """Over all servers."""
        return sum(self.slots)

    @property
    def has_bare(self) -> bool:
        """Whether a bare client can make the same calls."""
        return len(self.slots) == 1 and not self.sigma


CASES = {
    "16x50ms": Case((16,), 0.05, 0.97),
    "64x50ms": Case((64,), 0.05, 0.97),
    "512x500ms": Case((512,), 0.5, 0.97, queries=2000),
    "lognormal": Case((16,), 0.05, 0.97, sigma=1.0, judge=("--sigma", "1", *FAILURES)),
    "sliding": Case((16,), 0.05, 0.97, queries=200, strategy="sliding"),
    "endpoints": Case((4, 8, 16), 0.05, 0.95),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """Calls a second between the first and the last window, and CPU seconds of the client."""

    calls: int
    rate: float
    cpu: float


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


def ideal_rate(case: Case, queries: int) -> float:
    """Calls a second of a scheduler without overhead: slots never wait for it, merges go first.

    A simulation with the latencies' distribution; failures cost no slot time and are retried.
    """
    rng = random.Random(7)
    ready: list[tuple[int, int]] = []
    waiting = iter(range(queries))
    left = [SEGMENTS] * queries
    free = case.all_slots
    at_work: list[tuple[float, int, int]] = []
    now, ended = 0.0, []
    while True:
        while free:
            if not ready:
                query = next(waiting, None)
                if query is None:
                    break
                ready += [(0, query)] * SEGMENTS
                heapq.heapify(ready)
            number, query = heapq.heappop(ready)
            spread = math.exp(case.sigma * rng.gauss(0, 1) - case.sigma**2 / 2)
            heapq.heappush(at_work, (now + case.call_seconds * spread, number, query))
            free -= 1
        if not at_work:
            break
        now, number, query = heapq.heappop(at_work)
        ended.append(now)
        free += 1
        left[query] -= number == 0
        if number == 0 and not left[query]:
            heapq.heappush(ready, (-1, query))
    return _rate(ended)


def _rate(times: Sequence[float]) -> float:
    """Of calls that ended then; the first 2% find empty slots."""
    skipped = len(times) // 50
    return (len(times) - 1 - skipped) / (times[-1] - times[skipped])


@contextmanager
def judge(case: Case, slots: int, log: Path) -> Iterator[str]:
    """A judge server with slots in a process of its own; yields its address."""
    command = [sys.executable, str(ROOT / "scripts" / "judge_server.py"), "--kind", "llama.cpp"]
    command += ["--slots", str(slots), "--call-seconds", str(case.call_seconds)]
    command += ["--context", "16384", "--log", str(log), *case.judge]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


def measure(folder: Path, case: Case, command: list[str]) -> Measured:
    """Run `command` (URLs and STORE put in) against judges of its own; read what those saw."""
    with ExitStack() as stack:
        stamp = time.monotonic_ns()
        logs = [folder / f"{stamp}-{number}.log" for number in range(len(case.slots))]
        urls = [
            stack.enter_context(judge(case, slots, log))
            for slots, log in zip(case.slots, logs, strict=True)
        ]
        names = {f"URL{number}": url for number, url in enumerate(urls)}
        names["STORE"] = str(folder / f"{stamp}.sqlite")
        with subprocess.Popen(
            [names.get(part, part) for part in command], stderr=subprocess.DEVNULL
        ) as process:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise SystemExit(f"exit {process.returncode}: {' '.join(command)}")
    calls = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
    # The preflight's calls come before the first window's.
    windows = [c["time"] for c in calls if c["purpose"] == "window" and c["status"] == 200]
    return Measured(len(windows), _rate(sorted(windows)), used.ru_utime + used.ru_stime)


def compare(folder: Path, case: Case, queries: int) -> dict[str, float]:
    """One run of each, in turn, and the ratios; CPU a call is that of more calls beyond few."""
    found = {}
    for name, count in (("few", max(10, queries // 8)), ("all", queries)):
        source = folder / f"{count}.jsonl"
        if not source.exists():
            make_input(source, count)
        run = [sys.executable, "-m", "batchrank", "run", str(source), "--store", "STORE"]
        run += ["-o", os.devnull, "--strategy", case.strategy, "--max-failed", "1"]
        for number in range(len(case.slots)):
            run += ["--base-url", f"URL{number}"]
        if case.has_bare:
            in_flight = str(case.all_slots + case.all_slots // 4)
            bare = [sys.executable, str(ROOT / "scripts" / "bare_client.py"), "URL0", str(source)]
            found[f"bare {name}"] = measure(folder, case, [*bare, in_flight, case.strategy])
        found[f"batchrank {name}"] = measure(folder, case, run)
    rate = found["batchrank all"].rate
    ideal = case.all_slots / case.call_seconds
    figures = {"calls/s": rate, "slot use": rate / ideal}
    if case.has_bare:
        figures["rate / bare"] = rate / found["bare all"].rate
        figures["slot use, bare"] = found["bare all"].rate / ideal
    else:
        figures["rate / simulated"] = rate / ideal_rate(case, queries)
    cpu = {
        name: (found[f"{name} all"].cpu - found[f"{name} few"].cpu)
        / (found[f"{name} all"].calls - found[f"{name} few"].calls)
        for name in ("bare", "batchrank")
        if f"{name} all" in found
    }
    figures["CPU µs a call"] = cpu["batchrank"] * 1e6
    if case.has_bare:
        figures["CPU / bare"] = cpu["batchrank"] / cpu["bare"]
    return figures


def main() -> None:
    """Print the median of each figure of each case over the runs; the least and largest ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--case", action="append", choices=CASES, help="default: all")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--queries", type=int, help="in place of each case's own number")
    parser.add_argument("--json", type=Path, help="write the medians there")
    arguments = parser.parse_args()
    table = {}
    for name in arguments.case or CASES:
        case = CASES[name]
        queries = arguments.queries or case.queries
        with tempfile.TemporaryDirectory() as folder:
            runs = [compare(Path(folder), case, queries) for _ in range(arguments.runs)]
        table[name] = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        print(f"{name}: {queries} queries x {CANDIDATES}, {case.strategy}, target {case.target}")
        for key, median in table[name].items():
            spread = [run[key] for run in runs]
            print(f"  {key:20}{median:>10.3f}  ({min(spread):.3f} to {max(spread):.3f})")
    if arguments.json:
        arguments.json.write_text(json.dumps(table, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
