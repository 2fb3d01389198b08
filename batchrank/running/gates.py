"""Whether a result is good enough to replace yesterday's, and whether going on is any use."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nsmallest
from itertools import islice, zip_longest
from pathlib import Path

from batchrank.errors import UsageError
from batchrank.formats.trec import read_qrels
from batchrank.keys import short_hash
from batchrank.metrics.evaluation import NDCG, Qrels, Scores, evaluate, parse_measures
from batchrank.ranking.replay import replay
from batchrank.results.causes import failures
from batchrank.spec.jobspec import JobSpec
from batchrank.store.history import last_accepted, pairs
from batchrank.store.queries import bad_queries, queries_of
from batchrank.store.records import Run, Totals
from batchrank.store.store import Store
from batchrank.values import QueryStatus, RankedQuery, Tally

_HOPELESS_WINDOWS = 50
_HOPELESS_SHARE = 0.95
_EXAMPLES = 3
_TOP = 10
_ANSWER_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Rejection:
    """A gate that a result does not pass: the figures in a sentence, and up to three examples."""

    reason: str
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Canaries:
    """Judged queries, which are ranked first; `hashes` are those of their qids."""

    qrels: Qrels
    hashes: frozenset[int]

    @classmethod
    def read(cls, path: Path) -> Canaries:
        """Of a TREC qrels file.

        Raises UsageError, also where it holds nothing relevant or ir_measures is not installed.
        """
        parse_measures([NDCG])
        qrels = read_qrels(path)
        if not any(grade > 0 for grades in qrels.values() for grade in grades.values()):
            raise UsageError(
                f"no document in {path} is relevant (a grade above 0): --gate-qrels would let "
                "every run pass"
            )
        return cls(qrels, frozenset(short_hash(qid) for qid in qrels))


async def rejections(
    store: Store, run: Run, spec: JobSpec, totals: Totals, canaries: Canaries | None
) -> list[Rejection]:
    """Every gate that a finished run does not pass; none where it is accepted.

    Raises UsageError where canaries were given that say nothing about the input.
    """
    found = []
    tally = totals.tally
    if tally.windows and tally.bad > spec.max_fallback * tally.windows:
        reason = (
            f"{tally.bad} of {tally.windows} windows ({tally.bad / tally.windows:.1%}) brought no "
            f"usable ranking ({tally.fallback} unusable, {tally.error} unanswered, {tally.thin} "
            "naming less than half of what was wanted); "
            f"--max-fallback allows {spec.max_fallback:.1%}"
        )
        found.append(Rejection(reason, await bad_windows(store, run)))
    queries = sum(totals.queries.values())
    failed = totals.queries.get(QueryStatus.FAILED, 0)
    if queries and failed > spec.max_failed * queries:
        reason = (
            f"{failed} of {queries} queries ({failed / queries:.1%}) failed; --max-failed allows "
            f"{spec.max_failed:.1%}"
        )
        found.append(Rejection(reason, await _failed_lines(store, run)))
    if canaries is not None and (worse := await worse_canaries(store, run, canaries)):
        found.append(worse)
    if spec.min_overlap is not None and (out := await _out_of_line(store, run, spec.min_overlap)):
        found.append(out)
    return found


def is_hopeless(tally: Tally, max_fallback: float) -> bool:
    """Whether so nearly all of the first windows are unusable that going on would waste a night."""
    enough = tally.windows >= _HOPELESS_WINDOWS
    return enough and max_fallback < 1 and tally.bad >= _HOPELESS_SHARE * tally.windows


async def _failed_lines(store: Store, run: Run) -> tuple[str, ...]:
    """Up to three lines that failed: one of each of the most frequent reasons, then others."""
    causes = await failures(store, run)
    turns = zip_longest(*(cause.examples for cause in causes))
    examples = (example for turn in turns for example in turn if example is not None)
    return tuple(islice(examples, _EXAMPLES))


async def bad_windows(store: Store, run: Run) -> tuple[str, ...]:
    """Up to three windows that brought no usable ranking, with their raw answers."""
    examples = []
    for line, ranked in await bad_queries(store, run.id, _EXAMPLES):
        for number, asked in enumerate(await replay(ranked, run.settings, store), 1):
            outcome = asked.permutation
            if outcome.is_usable and not outcome.is_thin(asked.wanted):
                continue
            said = asked.fault if asked.answer is None else asked.answer.text[:_ANSWER_CHARACTERS]
            notes = f" ({', '.join(outcome.notes)})" if outcome.notes else ""
            examples.append(
                f"query {ranked.qid} (line {line}), window {number}: {outcome.status}{notes}: "
                f"{said!r}"
            )
            break
    return tuple(examples)


async def worse_canaries(store: Store, run: Run, canaries: Canaries) -> Rejection | None:
    """The judged queries of a run, if their mean nDCG@10 is below that of the first stage.

    Raises UsageError where the run, of no shard, has none of them, or none that an order could make
    better.
    """
    found = {ranked.qid: ranked for ranked in await queries_of(store, run.id, canaries.hashes)}
    qrels = {qid: canaries.qrels[qid] for qid in found if qid in canaries.qrels}
    if not qrels and run.shard is not None:
        return None  # they may all be in other shards
    if not qrels:
        raise UsageError("none of the queries of --gate-qrels is in the input: nothing to judge by")
    if not any(qrels[qid].get(docid, 0) > 0 for qid in qrels for docid in found[qid].docids):
        raise UsageError(
            "no candidate in the input is relevant by --gate-qrels, so that no order is worse than "
            "another: nothing to judge by; are its docids those of the input?"
        )
    measures = parse_measures([NDCG])

    def score(run: Scores) -> dict[str, float]:
        return evaluate(measures, qrels, run)[NDCG].by_query

    def both() -> tuple[dict[str, float], dict[str, float]]:
        first = {qid: _scores(range(len(found[qid].docids)), found[qid]) for qid in qrels}
        return score(first), score({qid: _scores(found[qid].order, found[qid]) for qid in qrels})

    before, after = await asyncio.to_thread(both)
    mean_before, mean_after = (sum(scores.values()) / len(qrels) for scores in (before, after))
    if mean_after >= mean_before:
        return None
    worst = nsmallest(_EXAMPLES, qrels, key=lambda qid: after[qid] - before[qid])
    return Rejection(
        f"the {len(qrels)} judged queries came out worse than the first stage: mean {NDCG} "
        f"{mean_after:.4f}, first stage {mean_before:.4f} (--gate-qrels)",
        tuple(
            f"query {qid}: {NDCG} {after[qid]:.4f}, first stage {before[qid]:.4f}" for qid in worst
        ),
    )


def _scores(order: Sequence[int], ranked: RankedQuery) -> dict[str, float]:
    """docid → score, falling with the rank; `order` are places in `ranked.docids`."""
    return {ranked.docids[place]: float(-rank) for rank, place in enumerate(order)}


async def _out_of_line(store: Store, run: Run, allowed: float) -> Rejection | None:
    """The run, if its top 10 share too little with the last accepted run of the same job."""
    earlier = await last_accepted(store, run)
    if earlier is None:
        return None
    total = count = 0.0
    least: list[tuple[float, str, str]] = []
    async for now, then in pairs(store, run.id, earlier):
        top_now, top_then = now.ranking[:_TOP], then.ranking[:_TOP]
        if not top_now or not top_then:
            continue
        common = len(set(top_now) & set(top_then))
        share = common / min(len(top_now), len(top_then))
        total += share
        count += 1
        said = f"query {now.qid}: {common} of {min(len(top_now), len(top_then))} are the same"
        said += f"; best {', '.join(top_now[:3])}, then {', '.join(top_then[:3])}"
        least = nsmallest(_EXAMPLES, [*least, (share, now.qid, said)])
    if not count or total / count >= allowed:
        return None
    return Rejection(
        f"the top {_TOP} of {count:.0f} queries share {total / count:.1%} with run {earlier}, the "
        f"last that was accepted; --min-overlap asks for {allowed:.1%}",
        tuple(said for _, _, said in least),
    )
