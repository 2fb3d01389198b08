"""In which order a window's documents stand in the prompt: forward, reverse, seeded shuffles."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from batchrank.errors import UsageError
from batchrank.values import Ranking

Order = Callable[[Ranking], Ranking]

_SEED = re.compile("[0-9]{1,18}")
_ADAPTIVE = 3
_MOST_ADAPTIVE = 100


def forward(docids: Ranking) -> Ranking:
    """As believed so far."""
    return docids


def reverse(docids: Ranking) -> Ranking:
    """The least likely first."""
    return docids[::-1]


def shuffle(seed: int) -> Order:
    """A shuffle that depends on nothing but `seed` and the docids, so that a replay repeats it."""

    def order(docids: Ranking) -> Ranking:
        shuffled = list(docids)
        random.Random("\x1f".join((str(seed), *docids))).shuffle(shuffled)  # noqa: S311 - no secret
        return tuple(shuffled)

    return order


def parse_orders(text: str) -> tuple[Order, ...]:
    """Read a comma list such as `forward,reverse,shuffle:7`; UsageError for anything else."""
    orders: list[Order] = []
    names = [part.strip() for part in text.split(",")]
    for name in names:
        kind, _, seed = name.partition(":")
        if name == "forward":
            orders.append(forward)
        elif name == "reverse":
            orders.append(reverse)
        elif kind == "shuffle" and _SEED.fullmatch(seed):
            orders.append(shuffle(int(seed)))
        else:
            raise UsageError(
                f"{name!r} is no pass: use a comma list of forward, reverse and shuffle:SEED"
            )
    if len(set(names)) < len(names):
        raise UsageError(f"{text!r} has a pass twice: the second would tell nothing new")
    return tuple(orders)


def parse_merge_orders(text: str) -> tuple[tuple[Order, ...], bool]:
    """The presentations of a merge, and whether further ones are made only where they disagree.

    Raises UsageError for what is neither a list of passes nor `adaptive` (up to 3) or `adaptive:N`.
    """
    kinds = [part.strip().partition(":")[0] for part in text.split(",")]
    if "adaptive" in kinds and len(kinds) > 1:
        raise UsageError(
            f"{text!r} is no list of merge passes: adaptive, or adaptive:N, stands alone, since it "
            "chooses its presentations itself"
        )
    kind, _, most = text.strip().partition(":")
    if kind != "adaptive":
        return parse_orders(text), False
    if most and not (re.fullmatch("[0-9]{1,3}", most) and 2 <= int(most) <= _MOST_ADAPTIVE):
        raise UsageError(
            f"{text!r} is no merge pass: adaptive:N needs a number from 2 to {_MOST_ADAPTIVE}"
        )
    count = int(most or _ADAPTIVE)
    return (forward, *(shuffle(seed) for seed in range(1, count))), True
