"""How long calls took, and how slots were used over a night."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from math import ceil, floor, log10

from batchrank.reporting.facts import Latency, Slots
from batchrank.store.records import Run

_BINS = 24
_NICE = (1, 2, 2.5, 5, 10)


def latency(seconds: array[float]) -> Latency | None:
    """What is to be told of the times of calls; None where there are none."""
    if not seconds:
        return None
    ordered = sorted(seconds)

    def quantile(share: float) -> float:
        return ordered[min(len(ordered) - 1, floor(share * len(ordered)))]

    width = _nice(max(quantile(0.99), 0.001) / _BINS)
    bins = min(_BINS, max(1, ceil(ordered[-1] / width + 1e-9)))
    counts = [0] * bins
    for value in ordered:
        counts[min(bins - 1, int(value / width))] += 1
    return Latency(
        len(ordered),
        quantile(0.5),
        quantile(0.9),
        quantile(0.99),
        ordered[-1],
        width,
        tuple(counts),
    )


def slots(night: Sequence[Run]) -> tuple[Slots, ...]:
    """What the runs of a night kept of their slots; a run that was killed kept nothing."""
    began = min((run.started for run in night), default=0.0)
    return tuple(_traced(sorted(night, key=lambda run: run.started), began))


def _traced(night: Iterable[Run], began: float) -> Iterable[Slots]:
    for run in night:
        trace = (run.summary or {}).get("trace")
        if trace and trace["in_flight"]:
            yield Slots(
                max(0.0, run.started - began),
                trace["step"],
                tuple(trace["in_flight"]),
                tuple(trace["capacity"]),
            )


def _nice(least: float) -> float:
    """The first of 1, 2, 2.5, 5 times a power of ten that is not below `least`."""
    power: float = 10 ** floor(log10(least))
    return next(step * power for step in _NICE if step * power >= least * (1 - 1e-9))
