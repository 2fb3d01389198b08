"""Measures incremental nights against full ones on judged queries with a noisy judge, in process.

    python scripts/bench_delta.py                  # the table on stdout
    python scripts/bench_delta.py --seeds 10 --json

No model is in it: the judge is that of `bench_strategies.py`. Tonight's lists are the first stage's
top 100. In last night's some of these, drawn by the seed, are replaced by documents of other
queries; `nights` in a row each bring their share of them back. All rows of a seed meet the same
noise, so that differences are paired.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from multiprocessing import Pool
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from batchrank.strategies.incremental import Merging, delta
from batchrank.strategies.orders import forward
from batchrank.strategies.segmented import segmented
from batchrank.values import Ranking
from scripts.strategies_sim.judge import Judge
from scripts.strategies_sim.measure import interval
from scripts.strategies_sim.rows import SETTINGS
from scripts.strategies_sim.topics import CUTOFF, Topic, load_topics

WINDOW = 20
CASES = ((1, 1), (5, 1), (10, 1), (20, 1), (30, 1), (5, 10))
"""Documents that change in a night, and nights in a row that build on one another."""
FULL = segmented(WINDOW, None, CUTOFF, [forward])
MERGING = Merging(WINDOW, CUTOFF, lambda named: segmented(WINDOW, None, named, [forward]))

_topics: list[Topic] = []


@dataclass(frozen=True, slots=True)
class Line:
    """One case: calls and nDCG@10 beside those of a full night; half of a 95% interval."""

    setting: str
    changed: int
    nights: int
    calls: float
    full_ndcg: float
    difference: float
    half: float


def play(
    topic: Topic, judge: Judge, changed: int, nights: int, rng: random.Random
) -> tuple[Ranking, float]:
    """Rank the first list in full and each later one from the ranking before.

    Returns tonight's ranking and the calls of the last night.
    """
    tonight = topic.first_stage
    strangers = rng.sample(sorted(set(topic.grades) - set(tonight)), changed * nights)
    away = dict(zip(rng.sample(tonight, changed * nights), strangers, strict=True))
    calls = 0.0
    ranking: Ranking = ()
    for night in range(nights + 1):
        for docid in list(away)[: changed if night else 0]:
            del away[docid]
        listed = tuple(away.get(docid, docid) for docid in tonight)
        strategy = FULL
        if night:
            there = frozenset(listed)
            strategy = delta(MERGING, tuple(docid for docid in ranking if docid in there))
        ranking, cost = judge.play(strategy(listed), full=False)
        calls = cost.calls
    return ranking, calls


def one_seed(seed: int) -> dict[tuple[str, int, int], tuple[float, float, float, float]]:
    """For each setting and case: mean calls and nDCG@10 of the delta and of the full ranking."""
    found = {}
    for setting in SETTINGS:
        judges = [Judge(setting, topic, seed) for topic in _topics]
        full = [judge.play(FULL(judge.topic.first_stage), full=False) for judge in judges]
        full_ndcg = fmean(j.topic.ndcg(r) for j, (r, _) in zip(judges, full, strict=True))
        full_calls = fmean(cost.calls for _, cost in full)
        for changed, nights in CASES:
            played = [
                play(j.topic, j, changed, nights, random.Random(f"{seed} {j.topic.qid} {changed}"))
                for j in judges
            ]
            ndcg = fmean(j.topic.ndcg(r) for j, (r, _) in zip(judges, played, strict=True))
            calls = fmean(calls for _, calls in played)
            found[setting.name, changed, nights] = (calls, full_calls, ndcg, full_ndcg)
    return found


def with_strangers(topics: Sequence[Topic]) -> list[Topic]:
    """The same topics, each knowing the documents of the next ones too, as irrelevant."""
    return [
        replace(
            topic,
            grades={**dict.fromkeys(other.grades, 0.0), **topic.grades},
            tokens={**other.tokens, **topic.tokens},
        )
        for topic, other in zip(topics, (*topics[1:], topics[0]), strict=True)
    ]


def measure(folder: Path, seeds: int, processes: int) -> list[Line]:
    """Play all cases for seeds 0, 1, … on the topics of `folder`; raises as `load_topics`."""
    _topics.extend(with_strangers(load_topics(folder)))
    with Pool(processes) as pool:
        results = pool.map(one_seed, range(seeds), chunksize=1)
    lines = []
    for setting, changed, nights in results[0]:
        rows = [result[setting, changed, nights] for result in results]
        gap = interval([ndcg - full for _, _, ndcg, full in rows])
        lines.append(
            Line(
                setting,
                changed,
                nights,
                fmean(calls / full for calls, full, _, _ in rows),
                fmean(full for _, _, _, full in rows),
                gap.mean,
                gap.half,
            )
        )
    return lines


def main() -> None:
    """Print a row for each setting of the judge and each case."""
    root = Path(__file__).resolve().parent.parent
    data = Path(os.environ.get("BATCHRANK_DATA", root.parent / "shared" / "data"))
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=data / "dl19", help="judged queries")
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    arguments = parser.parse_args()
    lines = measure(arguments.data, arguments.seeds, arguments.processes)
    if arguments.json:
        print(json.dumps([asdict(line) for line in lines], indent=2))
        return
    print("| judge | changed of 100 | nights | calls of a full one | nDCG@10, full | difference |")
    print("|---|--:|--:|--:|--:|--:|")
    for line in lines:
        print(
            f"| {line.setting} | {line.changed} | {line.nights} | {line.calls:.1%} "
            f"| {line.full_ndcg:.4f} | {line.difference:+.4f} ±{line.half:.4f} |"
        )


if __name__ == "__main__":
    main()
