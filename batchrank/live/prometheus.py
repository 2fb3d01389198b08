"""A snapshot as Prometheus metrics; docs/monitoring.md lists them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from batchrank.progress.snapshot import STEPS, Snapshot

_Samples = Iterable[tuple[Sequence[str], float | None]]
"""Label values beside the store, and the value; None: nothing is known, and nothing said."""


class _Figures(Collector):
    def __init__(self, snapshot: Snapshot, earlier: Mapping[str, float]) -> None:
        self._snapshot = snapshot
        self._earlier = earlier

    def collect(self) -> Iterator[Metric]:
        yield from _of_run(self._snapshot)
        yield from _of_steps(self._snapshot)
        yield from _of_lasts(self._snapshot, self._earlier)
        yield from _of_work(self._snapshot)
        yield from _of_endpoints(self._snapshot)


LAST_SUCCESS = "last_success_timestamp_seconds"
LAST_PUBLICATION = "last_publication_timestamp_seconds"


def registry_of(snapshot: Snapshot, earlier: Mapping[str, float] = {}) -> CollectorRegistry:
    """A registry of a run's metrics, each with the label `store`, so that jobs can be told apart.

    `earlier` has what earlier nights left of LAST_SUCCESS and LAST_PUBLICATION.
    """
    registry = CollectorRegistry()
    registry.register(_Figures(snapshot, earlier))
    return registry


def _of_run(now: Snapshot) -> Iterator[Metric]:
    def one(name: str, text: str, value: float | None) -> Metric:
        return _gauge(now, name, text, (), [((), value)])

    ended = now.exit_code is not None
    about = (now.version, now.model or "", now.input)
    labels = ("version", "model", "input")
    yield _gauge(now, "run_info", "What runs; always 1.", labels, [(about, 1)])
    yield one("running", "1 while a run is on, 0 once it has ended.", not ended)
    yield one("updated_timestamp_seconds", "When these figures were written.", now.written)
    yield one("start_timestamp_seconds", "When the run began.", now.started)
    yield one("duration_seconds", "How long the run has been at it.", now.seconds)
    yield one("deadline_timestamp_seconds", "When the run has to end.", now.deadline)
    yield one("remaining_seconds", "Time left at the pace so far.", now.seconds_left)
    yield one("done_ratio", "Part of the input that is finished.", now.share_done)
    by_deadline = now.share_by_deadline
    yield one("by_deadline_ratio", "Part that will be finished at the deadline.", by_deadline)
    yield one("waiting", "1 while nothing is sent at all.", now.waits is not None)
    yield one("store_bytes", "What the store takes on its disk.", now.store_bytes)
    yield one("exit_code", "How the run ended.", now.exit_code)
    end = now.written if ended else None
    yield one("end_timestamp_seconds", "When the run ended.", end)


def _of_steps(now: Snapshot) -> Iterator[Metric]:
    """Those after the run: the one that is on, and how others ended."""
    at = [((step,), now.state == state) for step, state in STEPS.items()]
    yield _gauge(now, "step_running", "1 while a step after the run is on.", ("step",), at)
    ended = [((step.name,), step.exit_code) for step in now.steps]
    yield _gauge(now, "step_exit_code", "How a step after the run ended.", ("step",), ended)


def _of_lasts(now: Snapshot, earlier: Mapping[str, float]) -> Iterator[Metric]:
    """When things last went well, in this night or an earlier one."""
    good = {step.name: step.at for step in now.steps if step.exit_code == 0}
    success = now.written if now.exit_code == 0 else earlier.get(LAST_SUCCESS)
    published = good.get("publish", earlier.get(LAST_PUBLICATION))
    text = "When a run, with what came after it, last ended with 0."
    yield _gauge(now, LAST_SUCCESS, text, (), [((), success)])
    text = "When the rankings of a run were last published after it."
    yield _gauge(now, LAST_PUBLICATION, text, (), [((), published)])


def _of_work(now: Snapshot) -> Iterator[Metric]:
    yield _gauge(now, "lines", "Lines of the input that were read.", (), [((), now.lines)])
    yield _gauge(now, "known_lines", "Lines finished before the run.", (), [((), now.known)])
    yield _gauge(now, "open_queries", "Queries begun or waiting.", (), [((), now.open)])
    queries = [((status,), count) for status, count in now.queries.items()]
    yield _counter(now, "queries", "Queries that were ranked.", ("status",), queries)
    windows = [((one.status, one.source), one.count) for one in now.window_counts]
    text = "Windows by how they ended and whose answer they were read from."
    yield _counter(now, "windows", text, ("status", "endpoint"), windows)
    text = "Part of the windows without a usable ranking, as max_fallback counts them."
    yield _gauge(now, "fallback_ratio", text, (), [((), now.fallback_rate)])
    yield _counter(now, "saved_calls", "Calls the store saved.", (), [((), now.calls_saved)])
    yield _counter(now, "retries", "Calls that were sent again.", (), [((), now.retries)])
    gates = [((gate.name,), gate.value) for gate in now.gates]
    yield _gauge(now, "gate_ratio", "What a gate counts, so far.", ("gate",), gates)
    limits = [((gate.name,), gate.limit) for gate in now.gates]
    yield _gauge(now, "gate_limit_ratio", "What a gate allows.", ("gate",), limits)
    passed = [((gate.name,), gate.passed) for gate in now.gates]
    yield _gauge(now, "gate_passed", "1 where a gate is passed, so far.", ("gate",), passed)


def _of_endpoints(now: Snapshot) -> Iterator[Metric]:
    def each(name: str, text: str, values: Iterable[float]) -> Metric:
        samples = [((one.url,), value) for one, value in zip(now.endpoints, values, strict=True)]
        return _gauge(now, name, text, ("endpoint",), samples)

    ends = now.endpoints
    yield each("endpoint_up", "1 while a server takes calls.", (e.health == "well" for e in ends))
    yield each("in_flight_calls", "Calls that are in flight.", (one.in_flight for one in ends))
    yield each("limit_calls", "Calls that may be in flight.", (one.limit for one in ends))
    calls = [((one.url, "answered"), one.answered) for one in ends]
    calls += [((one.url, "failed"), one.failed) for one in ends]
    yield _counter(now, "calls", "Attempts at calls.", ("endpoint", "outcome"), calls)
    tokens = [((one.url, "prompt"), one.prompt_tokens) for one in ends]
    tokens += [((one.url, "completion"), one.completion_tokens) for one in ends]
    yield _counter(now, "tokens", "Tokens, as servers count them.", ("endpoint", "kind"), tokens)
    text = "How long answered calls took, from sending to the last byte."
    names = ("store", "endpoint")
    latency = HistogramMetricFamily("batchrank_call_duration_seconds", text, labels=names)
    bounds = [*map(str, now.latency_bounds), "+Inf"]
    for one in ends:
        buckets = list(zip(bounds, map(float, accumulate(one.latencies)), strict=True))
        latency.add_metric((now.store, one.url), buckets, one.seconds)
    yield latency


def _gauge(now: Snapshot, name: str, text: str, labels: Sequence[str], samples: _Samples) -> Metric:
    family = GaugeMetricFamily(f"batchrank_{name}", text, labels=("store", *labels))
    return _filled(family, now, samples)


def _counter(
    now: Snapshot, name: str, text: str, labels: Sequence[str], samples: _Samples
) -> Metric:
    family = CounterMetricFamily(f"batchrank_{name}", text, labels=("store", *labels))
    return _filled(family, now, samples)


def _filled(
    family: GaugeMetricFamily | CounterMetricFamily, now: Snapshot, samples: _Samples
) -> Metric:
    for values, value in samples:
        if value is not None:
            family.add_metric((now.store, *values), float(value))
    return family
