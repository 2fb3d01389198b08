"""A snapshot of a run in the middle of its night, with something in each of its fields."""

from __future__ import annotations

from batchrank.progress.snapshot import (
    Finished,
    GateState,
    Move,
    Rates,
    Snapshot,
    WindowCount,
)
from batchrank.serving.stats import EndpointState
from batchrank.values import QueryStatus, Status, Tally

GPU1 = "http://gpu1:8000"
GPU2 = "http://gpu2:8000"


def _top(*places: int) -> tuple[Move, ...]:
    return tuple(Move(f"d{place}", place) for place in places)


SNAPSHOT = Snapshot(
    version="0.1",
    process=4711,
    written=1_800_000_060.0,
    store="night.sqlite",
    input="queries.jsonl",
    output="queries.ranked.jsonl",
    started=1_800_000_000.0,
    seconds=60.0,
    quiet_seconds=10.0,
    held_back_seconds=5.0,
    state="ranking",
    run=7,
    model="qwen3:8b",
    deadline=1_800_000_085.0,
    seconds_left=30.0,
    share_done=0.75,
    share_by_deadline=0.85,
    told="300 of 400 queries",
    lines=400,
    known=100,
    finished=200,
    open=100,
    queries={"ok": 190, "degraded": 9, "failed": 1},
    windows=Tally(ok=950, fallback=50),
    window_counts=(
        WindowCount(Status.ERROR, "none", 2),
        WindowCount(Status.FALLBACK, GPU2, 48),
        WindowCount(Status.OK, GPU1, 600),
        WindowCount(Status.OK, "store", 300),
    ),
    calls=1000,
    calls_saved=300,
    retries=4,
    prompt_tokens=120_000,
    completion_tokens=6_000,
    rates=Rates(3.3, 16.7, 2000.0, 100.0),
    trace=(14.0, 18.0, 17.0),
    trace_step=20.0,
    in_flight=16,
    capacity=20,
    store_bytes=5_000_000,
    endpoints=(
        EndpointState(
            *(GPU1, "well", 20, 16, 700, 3, 90_000, 4_500, 210.0),
            latencies=(0, 10, 290, 390, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0),
            rate=12.3,
        ),
        EndpointState(
            *(GPU2, "resting", 0, 0, 300, 40, 30_000, 1_500, 290.0),
            latencies=(0, 0, 0, 100, 150, 49, 0, 0, 0, 0, 0, 0, 0, 1),
        ),
    ),
    gates=(
        GateState("max_fallback", 0.05, 0.05, True),
        GateState("max_failed", 0.005, 0.01, True),
        GateState("gate_qrels", None, None, None),
    ),
    recent=(
        Finished(
            *("q2", "why is the sky blue", QueryStatus.OK, 1_800_000_059.0, 1.5, 6, 0, 100, 2),
            top=_top(3, 1, 40, 2, 55, 4, 5, 6, 7, 8),
        ),
        Finished("q1", "tides", QueryStatus.DEGRADED, 1_800_000_058.0, 2.5, 6, 1, 4, 0, _top(1, 2)),
    ),
)
