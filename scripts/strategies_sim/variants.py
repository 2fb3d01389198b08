"""Ways to rank that the program does not offer, to measure what its own choices are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from batchrank.strategies.base import Plan, Strategy
from batchrank.values import Permutation, Ranking


def contiguous(strategy: Strategy, segments: int) -> Strategy:
    """`segmented`, whose round-robin dealing then gives runs of neighbours: 1–20, 21–40, …"""

    def plan(first_stage: Ranking) -> Plan:
        size = -(-len(first_stage) // segments)
        return strategy(tuple(d for start in range(size) for d in first_stage[start::size]))

    return plan


def shown_as_believed(strategy: Strategy) -> Strategy:
    """Every window shown in its prior order, not in the first stage's."""

    def plan(first_stage: Ranking) -> Plan:
        steps = strategy(first_stage)
        try:
            windows = next(steps)
            while True:
                answers = yield tuple(replace(window, shown=window.prior) for window in windows)
                windows = steps.send(answers)
        except StopIteration as end:
            ranking: Ranking = end.value
            return ranking

    return plan


def forgetful(strategy: Strategy) -> Strategy:
    """`segmented` that takes no notice, after the merge, of what segments said."""

    def plan(first_stage: Ranking) -> Plan:
        steps = strategy(first_stage)
        try:
            windows = next(steps)
            while True:
                answers = yield windows
                windows = steps.send([replace(answer, named=0) for answer in answers])
        except StopIteration as end:
            ranking: Ranking = end.value
            return ranking

    return plan


def mixed(strategy: Strategy, place_weight: float, first_weight: float) -> Strategy:
    """`segmented` of two rounds with fixed weights of a winner's places mixed into the merge.

    Those are its place in its segment and its rank in the first stage, both scaled to the merge.
    """

    def plan(first_stage: Ranking) -> Plan:
        steps = forgetful(strategy)(first_stage)
        answers: Sequence[Permutation] = ()
        rounds: list[Sequence[Permutation]] = []
        try:
            windows = next(steps)
            while True:
                answers = yield windows
                rounds.append(answers)
                windows = steps.send(answers)
        except StopIteration as end:
            ranking: Ranking = end.value
        segments, (merge,) = rounds
        size = len(merge.order)
        place = {docid: rank for segment in segments for rank, docid in enumerate(segment.order)}
        value = {
            docid: (1 - place_weight - first_weight) * rank
            + place_weight * len(segments) * place[docid]
            + first_weight * size * first_stage.index(docid) / len(first_stage)
            for rank, docid in enumerate(merge.order)
        }
        return (*sorted(merge.order, key=value.__getitem__), *ranking[size:])

    return plan
