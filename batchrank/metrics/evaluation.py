"""Scores a run against judgements with every measure that ir_measures knows by name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from subprocess import CalledProcessError
from typing import TYPE_CHECKING

from batchrank.errors import UsageError

if TYPE_CHECKING:
    from ir_measures import Measure

Qrels = dict[str, dict[str, int]]
"""qid → docid → grade."""
Scores = dict[str, dict[str, float]]
"""A run: qid → docid → score, the best document with the highest."""

NDCG = "nDCG@10"
"""What settings, gates and prices are judged by."""
DEFAULT_MEASURES = (NDCG, "RR@10", "R@20", "Success@5", "P@10")
_DEEPEST = 1_000_000
"""The largest cutoff: trec_eval's code ends the process at one that it can't hold, and at 0."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A run by one measure: `value` over all queries, as the measure aggregates, and each query's.

    `summed` measures (NumRet, NumRel, NumQ) add up the queries, all others take their mean.
    """

    value: float
    by_query: dict[str, float]
    summed: bool


def parse_measures(names: Sequence[str]) -> list[Measure]:
    """The measures with these names, such as `nDCG@10` or `P(rel=2)@5`, each once.

    Raises UsageError where ir_measures is not installed, or a name or parameter is wrong.
    """
    try:
        import ir_measures  # noqa: F401, PLC0415 - an extra, and slow to import
    except ImportError as error:
        raise UsageError("measuring needs ir_measures: pip install 'batchrank[eval]'") from error
    return list(dict.fromkeys(_parse(name) for name in names))


def evaluate(measures: Sequence[Measure], qrels: Qrels, run: Scores) -> dict[str, Scored]:
    """Score `run` by each measure, under the measure's name.

    A query of the qrels that the run lacks counts 0, as with `trec_eval -c`; one of the run that
    has no judgement does not count. Ties of scores are the measure's: trec_eval puts the larger
    docid first, the MS MARCO script behind RR@k the smaller.
    Raises UsageError where a measure can't be computed on these files.
    """
    import ir_measures  # noqa: PLC0415 - an extra, and slow to import

    judged = {qid: scores for qid, scores in run.items() if qid in qrels and scores}
    by_measure: dict[Measure, dict[str, float]] = {measure: {} for measure in measures}
    try:
        for metric in ir_measures.iter_calc(measures, qrels, judged):
            by_measure[metric.measure][metric.query_id] = metric.value
    except CalledProcessError as error:
        # gdeval, for ERR and for nDCG with exponential gains, is a Perl script of 2009.
        names = ", ".join(str(measure) for measure in measures)
        raise UsageError(
            f"one of {names} can't be computed: it needs Perl, and qids that are numbers"
        ) from error
    return {str(measure): _scored(measure, values) for measure, values in by_measure.items()}


def _scored(measure: Measure, by_query: Mapping[str, float]) -> Scored:
    from ir_measures import SumAgg  # noqa: PLC0415 - an extra, and slow to import

    aggregator = measure.aggregator()
    for value in by_query.values():
        aggregator.add(value)
    ordered = {qid: float(by_query[qid]) for qid in sorted(by_query)}
    return Scored(float(aggregator.result()), ordered, isinstance(aggregator, SumAgg))


def _parse(name: str) -> Measure:
    import ir_measures  # noqa: PLC0415 - an extra, and slow to import

    try:
        measure = ir_measures.parse_measure(name)
    except NameError:
        raise UsageError(f"unknown measure {name!r}{_near(name)}") from None
    except ValueError:
        raise UsageError(
            f"measure {name!r} can't be read: write it like nDCG@10 or P(rel=2)@10, "
            "and each with a --measure of its own"
        ) from None
    if unknown := sorted(measure.params.keys() - measure.SUPPORTED_PARAMS.keys()):
        known = ", ".join(measure.SUPPORTED_PARAMS) or "none"
        raise UsageError(f"measure {name} has no parameter {unknown[0]!r}; it has: {known}")
    cutoff = measure.params.get("cutoff")
    if isinstance(cutoff, int) and not 1 <= cutoff <= _DEEPEST:
        raise UsageError(f"measure {name}: a cutoff is at least 1 and at most {_DEEPEST:,}")
    try:
        ir_measures.evaluator([measure], {"q": {"d": 1}})
    except AssertionError as error:
        reason = re.sub(r"=<object object at .*>", " (none given)", str(error))
        raise UsageError(f"measure {name}: {reason}; write for example P(rel=2)@10") from None
    except ValueError as error:
        raise UsageError(
            f"nothing that is installed computes {name}: {' '.join(str(error).split())}"
        ) from None
    return measure


def _near(name: str) -> str:
    """Suggest known measures for a name, whatever its case, with the cutoff that was given."""
    import ir_measures  # noqa: PLC0415 - an extra, and slow to import

    known = {measure.lower(): measure for measure in sorted(ir_measures.measures.registry)}
    stem = re.split(r"[@(]", name)[0]
    near = difflib.get_close_matches(stem.lower(), list(known), n=3, cutoff=0.5)
    if not near:
        return "; for example nDCG@10, RR@10, AP, R@100, Success@5, P@10"
    rest = name[len(stem) :]
    return f"; did you mean {' or '.join(known[match] + rest for match in near)}?"
