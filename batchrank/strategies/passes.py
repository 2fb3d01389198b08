"""Runs a strategy several times at once, each over another presentation, and fuses the results."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

from batchrank.fusion import borda
from batchrank.strategies.base import Asking, Plan, Round, Strategy, through
from batchrank.strategies.orders import Order, forward
from batchrank.values import Permutation, Ranking


def in_passes(strategy: Strategy, orders: Sequence[Order]) -> Strategy:
    """Independent passes of `strategy`, one an order, fused by Borda with ties to the first stage.

    Only the presentation differs between passes: what stands where an answer is silent stays the
    first stage's order, so a model that never answers leaves it untouched.
    """

    def plan(first_stage: Ranking) -> Plan:
        if len(orders) == 1:
            return (yield from _shown(strategy(first_stage), orders[0]))
        rankings = yield from _together([_shown(strategy(first_stage), order) for order in orders])
        return borda(rankings, first_stage)

    return plan


def _shown(plan: Plan, order: Order) -> Plan:
    if order is forward:
        return plan

    def ask(windows: Round) -> Asking:
        return (yield tuple(replace(w, shown=order(w.shown)) for w in windows))

    return through(plan, ask)


def _together(
    plans: Sequence[Plan],
) -> Generator[Round, Sequence[Permutation], list[Ranking]]:
    """Run plans in step: each yielded round holds the next round of every plan still running."""
    results: dict[int, Ranking] = {}
    rounds: dict[int, Round] = {}
    answers: dict[int, Sequence[Permutation] | None] = dict.fromkeys(range(len(plans)))
    while answers:
        for number, given in answers.items():
            try:
                rounds[number] = next(plans[number]) if given is None else plans[number].send(given)
            except StopIteration as end:
                results[number] = end.value
                rounds.pop(number, None)
        answers = {}
        if rounds:
            outcomes = iter((yield tuple(w for r in rounds.values() for w in r)))
            for number, windows in rounds.items():
                answers[number] = [next(outcomes) for _ in windows]
    return [results[number] for number in range(len(plans))]
