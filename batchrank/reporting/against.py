"""Puts a run beside another: how alike they are, and which is better where that is judged."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace
from pathlib import Path

from batchrank.keys import short_hash
from batchrank.measuring.comparison import Comparison, compare_runs, likenesses
from batchrank.measuring.runs import MeasuredRun, read_source, read_store
from batchrank.metrics.evaluation import DEFAULT_MEASURES, Qrels, parse_measures
from batchrank.reporting.facts import TOP, Against

_MOST = 4_000
"""Queries whose two rankings are held in memory, the judged ones beside."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What is told of two runs, the other run, and the queries that changed most, most first."""

    against: Against
    other: MeasuredRun
    most: list[str]


@dataclass(frozen=True, slots=True)
class Sampled(Container[str]):
    """The judged qids and of the others one in `every`, the same ones in any run."""

    judged: Container[str]
    every: int

    def __contains__(self, qid: object) -> bool:
        """Whether this query is looked at."""
        return qid in self.judged or (isinstance(qid, str) and short_hash(qid) % self.every == 0)


async def read_two(
    store: Path, run: int, other: Path, lines: int, qrels: Qrels | None
) -> tuple[MeasuredRun, MeasuredRun, bool]:
    """This run and the other, and whether they are read in part only."""
    every = -(-lines // _MOST)
    wanted = Sampled(qrels or (), every) if every > 1 else None
    here = await read_store(store, run, wanted)
    there = await read_source(other, None, wanted)
    return here, there, wanted is not None


def compare(
    here: MeasuredRun, there: MeasuredRun, qrels: Qrels | None, *, is_sample: bool, keep: int
) -> Compared:
    """Compare two runs that were read; UsageError where they have no query in common."""
    (found,) = likenesses([there, here], TOP)
    by_query = found.by_query
    measured = _measured(here, there, qrels)
    moved = [qid for qid in by_query if by_query[qid].rbo < 1 - 1e-9]
    return Compared(
        Against(
            name=there.name,
            queries=len(by_query),
            is_sample=is_sample,
            only_here=len(here.scores.keys() - there.scores.keys()),
            only_there=len(there.scores.keys() - here.scores.keys()),
            overlap=found.overlap,
            tau=found.tau,
            rbo=found.rbo,
            same_top=sum(here.ranking(qid)[:TOP] == there.ranking(qid)[:TOP] for qid in by_query),
            judged=measured.compared if measured else 0,
            changes=tuple(pair.change for pair in measured.pairs) if measured else (),
        ),
        there,
        sorted(moved, key=lambda qid: (by_query[qid].overlap, by_query[qid].rbo, qid))[:keep],
    )


def _measured(here: MeasuredRun, there: MeasuredRun, qrels: Qrels | None) -> Comparison | None:
    """Both by the judged queries that both have, None where there is none."""
    if qrels is None or not any(qid in there.scores and qid in here.scores for qid in qrels):
        return None
    judged = [
        replace(run, scores={qid: run.scores[qid] for qid in run.scores if qid in qrels})
        for run in (there, here)
    ]
    return compare_runs(parse_measures(DEFAULT_MEASURES), qrels, judged, "randomisation")
