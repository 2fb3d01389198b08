"""Puts runs side by side: what changed by each measure, for which queries, and how surely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING

from batchrank.errors import UsageError
from batchrank.formats.wording import quoted, shown
from batchrank.measuring.runs import MeasuredRun
from batchrank.metrics.agreement import Agreement, agreement
from batchrank.metrics.evaluation import Qrels, Scored, evaluate
from batchrank.metrics.significance import Difference, Test, holm, paired_difference

if TYPE_CHECKING:
    from ir_measures import Measure

EXTREMES = 10
"""Queries that are shown on either side."""


@dataclass(frozen=True, slots=True)
class Change:
    """One measure before and after; `difference` is over the queries that both have a value for."""

    measure: str
    before: float
    after: float
    difference: Difference


@dataclass(frozen=True, slots=True)
class Pair:
    """Two of several runs by one measure; `corrected` is the p-value after Holm's correction."""

    first: int
    second: int
    change: Change
    corrected: float


@dataclass(frozen=True, slots=True)
class QueryChange:
    """One query by one measure."""

    qid: str
    before: float
    after: float

    @property
    def change(self) -> float:
        """What the query gained."""
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A run beside its first stage, or alone where `first_stage` (what it is) is None.

    `queries` are by the first measure. `missing` are judged queries that a run lacks. Beside its
    first stage all is over the `compared` queries that both have; alone, those it lacks count 0.
    """

    run: MeasuredRun
    judged: int
    compared: int
    test: Test
    scored: dict[str, Scored]
    missing: list[str]
    texts: dict[str, str]
    first_stage: str | None = None
    first_scored: dict[str, Scored] = field(default_factory=dict)
    first_missing: list[str] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    queries: list[QueryChange] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Several runs by judgements; `queries` by the first measure, of two runs only.

    All is over the `compared` queries that every run has; `missing` are those that each lacks.
    """

    runs: list[MeasuredRun]
    judged: int
    compared: int
    test: Test
    scored: list[dict[str, Scored]]
    missing: list[list[str]]
    pairs: list[Pair]
    queries: list[QueryChange]
    texts: dict[str, str]


@dataclass(frozen=True, slots=True)
class Likeness:
    """Two of several runs without judgements: means over the queries that both have.

    `tau` is the mean over the queries where it is defined, None where it is for none.
    """

    first: int
    second: int
    overlap: float
    tau: float | None
    rbo: float
    by_query: dict[str, Agreement]


def evaluate_run(
    measures: Sequence[Measure],
    qrels: Qrels,
    run: MeasuredRun,
    other_first_stage: MeasuredRun | None,
    test: Test,
) -> Evaluation:
    """Measure a run beside `other_first_stage`, or else the first stage that it tells of itself.

    Raises UsageError where a run and the qrels have no query in common.
    """
    missing = _missing(qrels, run)
    if other_first_stage is not None:
        first = other_first_stage
        named = first.name
    elif run.first_stage:
        first = MeasuredRun(run.name, run.first_stage)
        named = "the order in which the candidates came"
    else:
        scored = _score(measures, qrels, run)
        return Evaluation(run, len(qrels), len(qrels), test, scored, missing, run.texts)
    compared, (before, after) = _score_common(measures, qrels, [first, run])
    return Evaluation(
        run,
        len(qrels),
        compared,
        test,
        after,
        missing,
        texts={**first.texts, **run.texts},
        first_stage=named,
        first_scored=before,
        first_missing=_missing(qrels, first),
        changes=[change(name, before[name], values, test) for name, values in after.items()],
        queries=_by_first_measure(before, after),
    )


def compare_runs(
    measures: Sequence[Measure], qrels: Qrels, runs: list[MeasuredRun], test: Test
) -> Comparison:
    """Measure two runs or more beside one another.

    The pairs of one measure are one family of tests for Holm's correction. Raises UsageError where
    a run and the qrels, or the runs, have no query in common.
    """
    compared, scored = _score_common(measures, qrels, runs)
    return Comparison(
        runs=runs,
        judged=len(qrels),
        compared=compared,
        test=test,
        scored=scored,
        missing=[_missing(qrels, run) for run in runs],
        pairs=[pair for name in scored[0] for pair in _pairs(name, scored, test)],
        queries=_by_first_measure(*scored) if len(runs) == 2 else [],
        texts={qid: text for run in reversed(runs) for qid, text in run.texts.items()},
    )


def change(measure: str, before: Scored, after: Scored, test: Test) -> Change:
    """Compare two runs by one measure.

    A summed measure (NumRet) changes by the sum of its queries' differences, not by their mean.
    """
    both = [qid for qid in before.by_query if qid in after.by_query]
    if not both:
        nothing = Difference(0.0, 0.0, 0.0, 1.0, 0, 0, 0)
        return Change(measure, before.value, after.value, nothing)
    difference = paired_difference(
        [before.by_query[qid] for qid in both], [after.by_query[qid] for qid in both], test
    )
    if before.summed:
        difference = replace(
            difference,
            change=difference.change * len(both),
            low=difference.low * len(both),
            high=difference.high * len(both),
        )
    return Change(measure, before.value, after.value, difference)


def hurt_and_helped(changes: Sequence[QueryChange]) -> tuple[list[QueryChange], list[QueryChange]]:
    """Of changes in rising order: the few most hurt, worst first, and most helped, best first."""
    hurt = [made for made in changes if made.change < 0]
    helped = [made for made in changes if made.change > 0]
    return hurt[:EXTREMES], helped[: -EXTREMES - 1 : -1]


def likenesses(runs: Sequence[MeasuredRun], cutoff: int) -> list[Likeness]:
    """How alike every two of some runs are; UsageError where two have no query in common."""
    found: list[Likeness] = []
    for first, second in combinations(range(len(runs)), 2):
        one, other = runs[first], runs[second]
        _check_common(one, other, "query")
        by_query = {
            qid: agreement(one.ranking(qid), other.ranking(qid), cutoff)
            for qid in one.scores
            if qid in other.scores
        }
        taus = [made.tau for made in by_query.values() if made.tau is not None]
        found.append(
            Likeness(
                first,
                second,
                overlap=sum(made.overlap for made in by_query.values()) / len(by_query),
                tau=sum(taus) / len(taus) if taus else None,
                rbo=sum(made.rbo for made in by_query.values()) / len(by_query),
                by_query=by_query,
            )
        )
    return found


def _check_common(one: MeasuredRun, other: MeasuredRun, what: str) -> None:
    for run in (one, other):
        if not run.scores and run.run is not None:
            raise UsageError(
                f"{quoted(run.name)} holds no ranking of its own: a run that went on from it may "
                "(`batchrank status --runs`)"
            )
    if one.scores.keys().isdisjoint(other.scores):
        first, second = (shown(next(iter(run.scores), "none")) for run in (one, other))
        raise UsageError(
            f"{quoted(one.name)} ({first}, …) and {quoted(other.name)} ({second}, …) have no "
            f"{what} in common: compare rankings of the same queries"
        )


def _score_common(
    measures: Sequence[Measure], qrels: Qrels, runs: Sequence[MeasuredRun]
) -> tuple[int, list[dict[str, Scored]]]:
    """How many judged queries all of the runs have, and the runs' scores over these.

    A run that has but some of the others' queries, such as a trial, would be worse by them alone.
    """
    for run in runs:
        _check_judged(qrels, run)
    for one, other in combinations(runs, 2):
        _check_common(one, other, "judged query")
    common = {qid: docs for qid, docs in qrels.items() if all(qid in run.scores for run in runs)}
    if not common:
        raise UsageError(
            f"these {len(runs)} runs have no judged query that is in all of them: compare them two "
            "by two"
        )
    return len(common), [evaluate(measures, common, run.scores) for run in runs]


def _score(measures: Sequence[Measure], qrels: Qrels, run: MeasuredRun) -> dict[str, Scored]:
    _check_judged(qrels, run)
    return evaluate(measures, qrels, run.scores)


def _check_judged(qrels: Qrels, run: MeasuredRun) -> None:
    if not run.scores:
        found = f", only for example {shown(run.unwanted[0])}" if run.unwanted else ""
        raise UsageError(
            f"{quoted(run.name)} ranks no query of the qrels ({shown(next(iter(qrels)))}, …){found}"
        )


def _missing(qrels: Qrels, run: MeasuredRun) -> list[str]:
    return [qid for qid in qrels if qid not in run.scores]


def _pairs(name: str, scored: Sequence[Mapping[str, Scored]], test: Test) -> list[Pair]:
    places = list(combinations(range(len(scored)), 2))
    changes = [change(name, scored[one][name], scored[two][name], test) for one, two in places]
    corrected = holm([made.difference.p for made in changes])
    return [
        Pair(*place, made, p) for place, made, p in zip(places, changes, corrected, strict=True)
    ]


def _by_first_measure(
    before: Mapping[str, Scored], after: Mapping[str, Scored]
) -> list[QueryChange]:
    """Every query that both have a value for, the most hurt first; ties by qid."""
    first = next(iter(after))
    values = after[first].by_query
    changes = [
        QueryChange(qid, value, values[qid])
        for qid, value in before[first].by_query.items()
        if qid in values
    ]
    return sorted(changes, key=lambda made: (made.change, made.qid))
