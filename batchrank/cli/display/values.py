"""What `eval` and `compare` found, as values for --json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from batchrank.measuring.comparison import Comparison, Evaluation, hurt_and_helped
from batchrank.measuring.cost import Worth
from batchrank.measuring.runs import MeasuredRun
from batchrank.metrics.evaluation import Scored


def evaluation_value(found: Evaluation, price: Worth | None) -> dict[str, object]:
    """All that `eval` found: `before` is null where no first stage is known."""
    hurt, helped = hurt_and_helped(found.queries)
    changes = {made.measure: made for made in found.changes}
    return {
        **run_value(found.run),
        "first_stage": found.first_stage,
        "queries": found.judged,
        "compared": found.compared,
        "test": found.test,
        "measures": [
            {
                "measure": name,
                "before": changes[name].before if name in changes else None,
                "after": scored.value,
                **(asdict(changes[name].difference) if name in changes else {}),
            }
            for name, scored in found.scored.items()
        ],
        "most_hurt": hurt,
        "most_helped": helped,
        "missing": found.missing,
        "missing_in_first_stage": found.first_missing,
        "per_query": [
            {
                "qid": qid,
                "query": found.texts.get(qid),
                "before": _values(found.first_scored, qid),
                "after": _values(found.scored, qid),
            }
            for qid in _qids(found.scored)
        ],
        "spending": found.run.spending,
        "worth": price,
    }


def comparison_value(found: Comparison) -> dict[str, object]:
    """All that `compare` found; `first` and `second` count the runs from 0."""
    return {
        "runs": [
            {
                **run_value(run),
                "measures": {name: values.value for name, values in scored.items()},
                "missing": missing,
            }
            for run, scored, missing in zip(found.runs, found.scored, found.missing, strict=True)
        ],
        "queries": found.judged,
        "compared": found.compared,
        "test": found.test,
        "pairs": [
            {
                "measure": pair.change.measure,
                "first": pair.first,
                "second": pair.second,
                **asdict(pair.change.difference),
                "p_holm": pair.corrected,
            }
            for pair in found.pairs
        ],
        "per_query": [
            {
                "qid": qid,
                "query": found.texts.get(qid),
                "runs": [_values(scored, qid) for scored in found.scored],
            }
            for qid in _qids(found.scored[0])
        ],
    }


def run_value(run: MeasuredRun) -> dict[str, object]:
    """Which run was measured, and what of it was not."""
    return {
        "run": run.name,
        "rows": {str(status): count for status, count in run.rows.items()},
        "repeated_rows": run.repeated,
        "without_judgements": run.unwanted,
    }


def _qids(scored: Mapping[str, Scored]) -> list[str]:
    return sorted({qid for values in scored.values() for qid in values.by_query})


def _values(scored: Mapping[str, Scored], qid: str) -> dict[str, float]:
    return {name: values.by_query[qid] for name, values in scored.items() if qid in values.by_query}
