"""Plays every strategy and reading under every setting and seed, and sums up over seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import Pool
from pathlib import Path
from statistics import fmean, stdev

from scripts.strategies_sim.judge import Cost, Judge
from scripts.strategies_sim.rows import SETTINGS, Reading, Row, rows
from scripts.strategies_sim.topics import Topic, load_topics

Key = tuple[str, Reading, str]
"""Row, reading, setting."""
Means = dict[Key, tuple[float, Cost]]
"""nDCG@10 and cost, each a mean over queries, of one seed."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over seeds and half the width of its 95% interval."""

    mean: float
    half: float

    def __str__(self) -> str:
        return f"{self.mean:.4f} ±{self.half:.4f}"


class Results:
    """What all seeds gave; seeds are paired, since all rows meet the same noise."""

    def __init__(self, seeds: Sequence[Means]) -> None:
        self._seeds = seeds

    def entries(self) -> list[tuple[str, Reading]]:
        """Rows and readings in the order of the table."""
        return list(dict.fromkeys((name, reading) for name, reading, _ in self._seeds[0]))

    def ndcg(self, name: str, reading: Reading, setting: str) -> Interval:
        """nDCG@10."""
        return interval([means[name, reading, setting][0] for means in self._seeds])

    def difference(self, key: Key, other: Key) -> Interval:
        """nDCG@10 of `key` less that of `other`, seed by seed."""
        return interval([means[key][0] - means[other][0] for means in self._seeds])

    def cost(self, name: str, reading: Reading) -> Cost:
        """The mean cost a query over seeds and settings."""
        return _mean([m[name, reading, s.name][1] for m in self._seeds for s in SETTINGS])


def interval(values: Sequence[float]) -> Interval:
    """The 95% interval of a mean by the normal distribution, for many seeds."""
    return Interval(fmean(values), 1.96 * stdev(values) / math.sqrt(len(values)))


def measure(folder: Path, seeds: int, processes: int) -> Results:
    """Play all rows for seeds 0, 1, … on the topics of `folder`; raises as `load_topics`."""
    with Pool(processes, _begin, (load_topics(folder),)) as pool:
        return Results(pool.map(_one_seed, range(seeds), chunksize=1))


_topics: list[Topic] = []
"""The topics of a worker process."""


def _begin(topics: list[Topic]) -> None:
    _topics.extend(topics)


def _one_seed(seed: int) -> Means:
    means: Means = {}
    for setting in SETTINGS:
        judges = [Judge(setting, topic, seed) for topic in _topics]
        for row in rows():
            for reading, (ndcg, cost) in _readings(row, judges).items():
                means[row.name, reading, setting.name] = (ndcg, cost)
    return means


def _readings(row: Row, judges: Sequence[Judge]) -> dict[Reading, tuple[float, Cost]]:
    found: dict[Reading, tuple[float, Cost]] = {}
    for reading in row.readings:
        if reading == "logprobs" and "full" in found:
            # The same order for one generated token a window.
            ndcg, cost = found["full"]
        else:
            ndcg, cost = _played(row, judges, full=reading != "winners")
        if reading in ("logprobs", "scores"):
            cost = Cost(cost.depth, cost.calls, cost.documents, cost.prompt_tokens, cost.calls)
        found[reading] = (ndcg, cost)
    return found


def _played(row: Row, judges: Sequence[Judge], *, full: bool) -> tuple[float, Cost]:
    scores = []
    costs = []
    for judge in judges:
        candidates = judge.topic.first_stage
        head, cost = judge.play(row.strategy(candidates[: row.depth]), full=full)
        scores.append(judge.topic.ndcg(head + candidates[row.depth :]))
        costs.append(cost)
    return fmean(scores), _mean(costs)


def _mean(costs: Sequence[Cost]) -> Cost:
    return Cost(
        fmean(cost.depth for cost in costs),
        fmean(cost.calls for cost in costs),
        fmean(cost.documents for cost in costs),
        fmean(cost.prompt_tokens for cost in costs),
        fmean(cost.generated_tokens for cost in costs),
    )
