"""What a strategy is: a generator of rounds of windows, and how one is driven."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence

from batchrank.values import Permutation, Ranking, Window

Round = tuple[Window, ...]
"""Windows that may run at the same time."""

Plan = Generator[Round, Sequence[Permutation], Ranking]
"""Yields rounds, is sent one permutation a window in the same order, returns the final ranking."""

Asking = Generator[Round, Sequence[Permutation], Sequence[Permutation]]
"""A round on its way: yields it, changed or not, and returns what it was sent."""

Strategy = Callable[[Ranking], Plan]
"""Takes the first stage's order. Deterministic, so that a resumed job can replay it."""


def through(plan: Plan, ask: Callable[[Round], Asking]) -> Plan:
    """Run `plan`, each of its rounds by way of `ask`, which may change the windows."""
    try:
        windows = next(plan)
        while True:
            windows = plan.send((yield from ask(windows)))
    except StopIteration as end:
        ranking: Ranking = end.value
        return ranking


async def drive(
    plan: Plan, ask: Callable[[Round, int], Awaitable[Sequence[Permutation]]]
) -> Ranking:
    """Run `plan` to its end; `ask` answers a round, given its number (0 is the first).

    The same loop serves a real run, a dry run and the replay of a stored one: they differ in `ask`.
    """
    number = 0
    try:
        windows = next(plan)
        while True:
            windows = plan.send(await ask(windows, number))
            number += 1
    except StopIteration as end:
        ranking: Ranking = end.value
        return ranking
    finally:
        plan.close()
