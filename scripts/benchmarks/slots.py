"""Servers with slots: the share of their time that batchrank and a bare client use.

Rates are those at the server. CPU a call is what more queries cost beyond few, so that imports and
the preflight don't count; of the bare client only that of its calls, not of rendering their bodies.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path

from scripts.benchmarks.figures import Figure, Row, figure
from scripts.benchmarks.ideal import SEGMENTS, ideal_rate, rate_of
from scripts.benchmarks.inputs import make_input
from scripts.benchmarks.processes import ROOT, batchrank, run, server
from scripts.judge.config import JudgeConfig
from scripts.judge.latency import Slots

CANDIDATES = 100
TEXT_BYTES = 800
"""Windows of 20 such documents give prompts of 16 KB."""
SLIDING = 9
"""Windows of a query in `sliding`: 20 documents, stride 10."""
CPU = 3.0
"""Times a bare client's CPU a call."""
_FAILURES = ("--error-rate", "0.02", "--errors", "500,reset,html")


@dataclass(frozen=True, slots=True)
class Case:
    """Servers with so many `slots` each, and a job for them.

    `use` is the share of the slots' time to be used, None where no target is set. `rate` is the
    least ratio of the rates: to a bare client's or, where the latencies spread or there are several
    servers, to what a scheduler without overhead could do.
    """

    slots: tuple[int, ...]
    call_seconds: float
    use: float | None = None
    rate: float = 0.97
    queries: int = 400
    strategy: str = "segmented"
    sigma: float = 0.0
    judge: tuple[str, ...] = ()

    @property
    def all_slots(self) -> int:
        """Over all servers."""
        return sum(self.slots)

    def calls(self, queries: int) -> int:
        """Windows of so many queries."""
        return queries * (SEGMENTS + 1 if self.strategy == "segmented" else SLIDING)

    @property
    def in_flight(self) -> int:
        """Calls at a time: a quarter more than slots, so that none waits for the client."""
        return self.all_slots + self.all_slots // 4

    @property
    def has_bare(self) -> bool:
        """Whether a bare client can make the same calls."""
        return len(self.slots) == 1 and not self.sigma


CASES = {
    "4x50ms": Case((4,), 0.05, queries=100),
    "16x50ms": Case((16,), 0.05, use=0.95),
    "64x50ms": Case((64,), 0.05, use=0.92),
    "512x500ms": Case((512,), 0.5, use=0.92, queries=2000),
    "lognormal": Case((16,), 0.05, sigma=1.0, judge=("--sigma", "1", *_FAILURES)),
    "sliding": Case((16,), 0.05, use=0.95, queries=200, strategy="sliding"),
    "endpoints": Case((4, 8, 16), 0.05, rate=0.95),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """Calls a second between the first and the last window, and CPU seconds of the client.

    `latencies` are the seconds that slots worked on them, in the order in which they came.
    """

    rate: float
    cpu: float
    latencies: tuple[float, ...]

    @property
    def calls(self) -> int:
        """How many windows were answered."""
        return len(self.latencies)


def measure(name: str, size: float, folder: Path) -> Row:
    """One run of each client in turn with `size` times the case's queries, and the ratios."""
    case = CASES[name]
    # The slots have to be filled some times over, or the start and the end are all there is.
    queries = max(round(case.queries * size), 2 * case.all_slots // 5, 16)
    found: dict[str, Measured] = {}
    for amount, count in (("few", queries // 4), ("all", queries)):
        source = folder / f"{name}-{count}.jsonl"
        if not source.exists():
            make_input(source, count, CANDIDATES, TEXT_BYTES)
        if case.has_bare:
            command = bare_command(case, source)
            found[f"bare {amount}"] = against_judges(folder, case, command, count)
        command = batchrank_command(case, source)
        found[f"batchrank {amount}"] = against_judges(folder, case, command, count)
    about = f"{queries} queries × {CANDIDATES}, {case.strategy}"
    return Row(name, about, tuple(_figures(case, queries, found)))


def bare_command(case: Case, source: Path) -> list[str]:
    """The bare client's command line, with URL0 and CPU in place of what is not known yet."""
    script = str(ROOT / "scripts" / "bare_client.py")
    options = [str(case.in_flight), "--strategy", case.strategy, "--cpu", "CPU"]
    return [sys.executable, script, "URL0", str(source), *options]


def batchrank_command(case: Case, source: Path) -> list[str]:
    """Batchrank's command line, with STORE, URL0, URL1, … in place of what is not known yet."""
    command = batchrank("run", str(source), "--store", "STORE", "-o", os.devnull)
    command += ["--strategy", case.strategy, "--max-failed", "1"]
    for number in range(len(case.slots)):
        command += ["--base-url", f"URL{number}"]
    return command


def _figures(case: Case, queries: int, found: dict[str, Measured]) -> list[Figure]:
    rate = found["batchrank all"].rate
    most = case.all_slots / case.call_seconds
    cpu = {
        name: (found[f"{name} all"].cpu - found[f"{name} few"].cpu)
        / (found[f"{name} all"].calls - found[f"{name} few"].calls)
        for name in ("bare", "batchrank")
        if f"{name} all" in found
    }
    figures = [figure("share of the slots' time used", rate / most, least=case.use)]
    if case.has_bare:
        bare = found["bare all"].rate
        figures += [
            figure("the bare client's share", bare / most),
            figure("rate / bare client's", rate / bare, least=case.rate),
            figure("CPU a call / bare client's", cpu["batchrank"] / cpu["bare"], most=CPU),
        ]
    else:
        simulated = ideal_rate(case.all_slots, found["batchrank all"].latencies, queries)
        # Several servers are held to the sum of what each could do.
        beside = simulated if case.sigma else most
        word = "simulated" if case.sigma else "sum of the servers'"
        figures.append(figure(f"rate / {word}", rate / beside, least=case.rate))
    figures.append(figure("CPU a call, ms", cpu["batchrank"] * 1e3))
    return figures


def against_judges(folder: Path, case: Case, command: list[str], queries: int) -> Measured:
    """Run `command` (URLs, STORE and CPU put in) against judges of its own; read what those saw.

    Raises SystemExit where fewer windows were answered than `queries` have.
    """
    stamp = time.monotonic_ns()
    logs = [folder / f"{stamp}-{number}.log" for number in range(len(case.slots))]
    with ExitStack() as stack:
        own_cpu = folder / f"{stamp}.cpu"
        places = {"STORE": str(folder / f"{stamp}.sqlite"), "CPU": str(own_cpu)}
        for number, (slots, log) in enumerate(zip(case.slots, logs, strict=True)):
            places[f"URL{number}"] = stack.enter_context(judge(case, slots, log))
        cpu = run([places.get(part, part) for part in command]).cpu
        if own_cpu.exists():
            cpu = float(own_cpu.read_text(encoding="ascii"))
    calls = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
    windows = [call for call in calls if call["purpose"] == "window" and call["status"] == 200]
    expected = case.calls(queries)
    if len(windows) < expected:
        raise SystemExit(f"{len(windows)} of {expected} windows answered: {' '.join(command)}")
    # What came before the job's own windows was the preflight.
    windows = sorted(windows, key=lambda call: call["time"])[-expected:]
    ended = sorted(call["time"] + call["seconds"] for call in windows)
    config = JudgeConfig(call_seconds=case.call_seconds, sigma=case.sigma)
    latencies = (Slots(config).seconds(0, 0, call["body"]) for call in windows)
    return Measured(rate_of(ended), cpu, tuple(latencies))


def judge(case: Case, slots: int, log: Path) -> AbstractContextManager[str]:
    """A judge with so many slots, which writes down its calls; the context yields its address."""
    return server(
        "judge_server.py",
        *("--kind", "llama.cpp", "--context", "16384", "--log", str(log)),
        *("--slots", str(slots), "--call-seconds", str(case.call_seconds), *case.judge),
    )
