"""Gathers the facts of a report from a store, in passes that hold little of it in memory."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

from batchrank.formats.trec import read_qrels
from batchrank.formats.wording import displayable
from batchrank.measuring.bias import Presented, winners_by_place
from batchrank.measuring.comparison import EXTREMES, Evaluation, evaluate_run
from batchrank.measuring.cost import Worth, worth
from batchrank.measuring.nights import night_of
from batchrank.measuring.runs import MeasuredRun, read_store
from batchrank.metrics.evaluation import DEFAULT_MEASURES, NDCG, Qrels, parse_measures
from batchrank.ranking.replay import replay
from batchrank.reporting.against import Compared, compare, read_two
from batchrank.reporting.facts import Facts, Failed, Winners
from batchrank.reporting.movement import EvenSample, Moved
from batchrank.reporting.queries import (
    CHANGED,
    FELL_BACK,
    MOVED,
    Beside,
    Picked,
    cut,
    look_at,
    pick_by_judgement,
)
from batchrank.reporting.repeating import repeat_command, settings_toml
from batchrank.reporting.timing import latency, slots
from batchrank.results.causes import Cause, failures, fallbacks
from batchrank.spec.jobspec import Cost
from batchrank.store.history import taken_over_by
from batchrank.store.queries import bad_queries, coverage, failed_queries
from batchrank.store.records import Run
from batchrank.store.spending import answer_seconds
from batchrank.store.store import Store
from batchrank.values import RankedQuery
from batchrank.version import __version__

_FAILED = 50
_CAUSES = 20
_SAMPLE = 300
"""Queries whose windows are read again to see where the winners stood."""
_PARTS = 5
_MESSAGE = 300


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which run is told of, and what stands beside it."""

    store: Path
    run: int | None = None
    qrels: Path | None = None
    against: Path | None = None
    cost: Cost | None = None


async def gather(wanted: Wanted) -> Facts:
    """The facts of a run.

    Raises UsageError where there is no such run, the judgements or the other run are of other
    queries, or a file can't be read; StoreError.
    """
    qrels = None
    if wanted.qrels is not None:
        parse_measures(DEFAULT_MEASURES)  # is it there? before anything is read
        qrels = await asyncio.to_thread(read_qrels, wanted.qrels)
    read = await read_store(wanted.store, wanted.run, qrels or ())
    assert read.run is not None
    assert read.spending is not None
    evaluation = None if qrels is None else await asyncio.to_thread(_evaluate, qrels, read)
    lines = read.rows.total()
    compared: Compared | None = None
    if wanted.against is not None:
        here, there, is_sample = await read_two(
            wanted.store, read.run, wanted.against, lines, qrels
        )
        compared = await asyncio.to_thread(
            compare, here, there, qrels, is_sample=is_sample, keep=EXTREMES
        )
    async with await Store.open(wanted.store) as store:
        run = await store.run(read.run)
        night = await night_of(store, run)
        moved, sample = await _stream(store, run)
        picked = Picked()
        if evaluation is not None:
            pick_by_judgement(picked, evaluation)
        if compared is not None:
            picked.add(CHANGED, compared.most)
        bad = await bad_queries(store, run.id, EXTREMES)
        picked.add(FELL_BACK, (ranked.qid for _, ranked in bad))
        picked.add(MOVED, moved.most)
        beside = Beside(qrels, evaluation, compared.other if compared else None)
        seconds = await answer_seconds(store, (one.id for one in night))
        name = displayable(str(wanted.store))
        return Facts(
            version=__version__,
            store=name,
            run=run,
            totals=await store.totals(run.id),
            coverage=await coverage(store, run.id),
            taken_over_by=await taken_over_by(store, run),
            spending=read.spending,
            price=_price(wanted.cost, read, evaluation),
            latency=latency(seconds),
            slots=slots(night),
            movement=moved.result(),
            winners=await _winners(store, run, sample),
            fallbacks=_bounded(await fallbacks(store, run)),
            failures=_bounded(await failures(store, run)),
            failed=await _failed(store, run),
            queries=await look_at(store, run, picked, beside),
            evaluation=evaluation,
            against=compared.against if compared else None,
            settings=settings_toml(run),
            command=repeat_command(run, name),
        )


def _evaluate(qrels: Qrels, read: MeasuredRun) -> Evaluation:
    return evaluate_run(parse_measures(DEFAULT_MEASURES), qrels, read, None, "randomisation")


def _price(cost: Cost | None, read: MeasuredRun, evaluation: Evaluation | None) -> Worth | None:
    spending, rows = read.spending, read.rows.total()
    if cost is None or spending is None or spending.seconds is None or not rows:
        return None
    gains = {made.measure: made.difference for made in evaluation.changes} if evaluation else {}
    return worth(cost, spending, rows, gains.get(NDCG))


def _bounded(causes: list[Cause]) -> tuple[Cause, ...]:
    return tuple(
        replace(cause, reason=cut(cause.reason, _MESSAGE), examples=[*map(_cut, cause.examples)])
        for cause in causes[:_CAUSES]
    )


def _cut(text: str) -> str:
    return cut(text, _MESSAGE)


async def _stream(store: Store, run: Run) -> tuple[Moved, list[RankedQuery]]:
    """Count how documents moved, and keep some queries that a model ranked."""
    moved = Moved(EXTREMES)
    sample: EvenSample[RankedQuery] = EvenSample(_SAMPLE)
    async for chunk in store.rows(run.id):
        for _, ranked in chunk:
            if ranked.tally.ok or ranked.tally.repaired:
                moved.add(ranked)
                sample.add(ranked)
    return moved, sample.items


async def _winners(store: Store, run: Run, sample: list[RankedQuery]) -> Winners | None:
    windows = [
        Presented(asked.window.shown, asked.permutation.order)
        for ranked in sample
        for asked in await replay(ranked, run.settings, store)
        if asked.permutation.is_usable and len(asked.window.shown) >= _PARTS
    ]
    if not windows:
        return None
    return Winners(len(windows), tuple(winners_by_place(windows, _PARTS)))


async def _failed(store: Store, run: Run) -> tuple[Failed, ...]:
    found = []
    async for line, ranked in failed_queries(store, run.id):
        found.append(
            Failed(
                line,
                cut(ranked.qid, 120),
                ranked.error_kind or "unknown",
                _cut(ranked.error or ""),
            )
        )
        if len(found) == _FAILED:
            break
    return tuple(found)
