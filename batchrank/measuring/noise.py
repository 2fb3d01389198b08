"""Measures how much a model differs from itself when it is asked the same again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from batchrank.measuring.comparison import Comparison, Likeness, Pair, compare_runs, likenesses
from batchrank.measuring.runs import MeasuredRun
from batchrank.measuring.trials import Trials, given
from batchrank.metrics.evaluation import Qrels
from batchrank.metrics.significance import Test
from batchrank.spec.jobspec import JobSpec

if TYPE_CHECKING:
    from ir_measures import Measure


@dataclass(frozen=True, slots=True)
class Yardsticks:
    """What two askings are measured by; `qrels` None: by how alike they are alone."""

    cutoff: int
    measures: Sequence[Measure] = ()
    qrels: Qrels | None = None
    test: Test = "randomisation"


@dataclass(frozen=True, slots=True)
class Noise:
    """Two askings of one sample beside each other; `measured` is None without judgements."""

    queries: int
    calls: int
    likeness: Likeness
    measured: Comparison | None


async def ask_twice(trials: Trials, base: JobSpec) -> list[MeasuredRun]:
    """The rankings of two askings, of which no answer of the first serves the second.

    Raises RejectedError where a gate is not passed, and as `Trials.run`.
    """
    once = await trials.run_well(given(base))
    again = await trials.run_well(given(base), fresh=True)
    return [MeasuredRun("asked once", once.scores), MeasuredRun("asked again", again.scores)]


def noise(runs: list[MeasuredRun], calls: int, by: Yardsticks) -> Noise:
    """Compare two askings that took `calls`."""
    (likeness,) = likenesses(runs, by.cutoff)
    measured = None
    if by.qrels is not None:
        judged = {qid: by.qrels[qid] for qid in runs[0].scores}
        measured = compare_runs(by.measures, judged, runs, by.test)
    return Noise(len(runs[0].scores), calls, likeness, measured)


def mean_size(found: Comparison, pair: Pair) -> float:
    """How much one query changes on average, up or down, by the measure of `pair`."""
    before, after = (
        found.scored[place][pair.change.measure].by_query for place in (pair.first, pair.second)
    )
    both = before.keys() & after.keys()
    return sum(abs(after[qid] - before[qid]) for qid in both) / len(both) if both else 0.0
