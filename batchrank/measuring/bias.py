"""Measures how a place in the prompt changes a document's place in the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

from batchrank.values import Ranking

Favoured = Literal["nothing", "first", "last", "ends", "middle"]
SAMPLES = 2_000
"""Samples of a bootstrap."""
_SEED = 20_240_229
_LEAST = 0.05
"""Of the whole list: an effect below one place of twenty is of no consequence."""
_WINNERS = 0.2
"""The share of a window that counts as its winners: 4 of 20, as a segment sends to the merge."""


@dataclass(frozen=True, slots=True)
class Presented:
    """One window as it was shown, and the order of the same docids that the answer gave."""

    shown: Ranking
    order: Ranking


@dataclass(frozen=True, slots=True)
class Effect:
    """What a place in the prompt is worth, as a share of the list; 95% bootstrap interval."""

    value: float
    low: float
    high: float

    @property
    def is_real(self) -> bool:
        """Whether it is neither too small to matter nor perhaps chance."""
        return abs(self.value) >= _LEAST and (self.low > 0 or self.high < 0)


@dataclass(frozen=True, slots=True)
class Bias:
    """`front`: the first place over the last one; `ends`: both ends over the middle."""

    front: Effect
    ends: Effect

    @property
    def favours(self) -> Favoured:
        """The places that a document gains most by."""
        if self.ends.is_real and (
            not self.front.is_real or abs(self.ends.value) > abs(self.front.value)
        ):
            return "ends" if self.ends.value > 0 else "middle"
        if self.front.is_real:
            return "first" if self.front.value > 0 else "last"
        return "nothing"


@dataclass(frozen=True, slots=True)
class Pairs:
    """Shares of document pairs, shown once in one order and once in the reverse.

    `same`: ordered alike both times. `echoed`: both times as the prompt had them; `against`: both
    times the other way. They add up to 1.
    """

    same: float
    echoed: float
    against: float


def position_bias(queries: Sequence[Sequence[Presented]]) -> Bias:
    """Tell what places do from what documents do; each query's documents are shown several times.

    With x the place in the prompt and m the merit that the answer gave, both from 0 to 1, fits

        m = document + front · (1/2 - x) + ends · (2x - 1)²

    by least squares with a constant for each document, so that good documents that stand in front
    count for nothing. The interval is the percentile bootstrap over queries, seeded. A document
    needs three different presentations at least: a reversed one alone leaves `ends` open.
    """
    import numpy as np  # noqa: PLC0415 - an extra, and slow to import

    sums = [_normal_equations(presented) for presented in queries]
    squares = np.array([square for square, _ in sums])
    products = np.array([product for _, product in sums])

    def solve(weights: Values) -> Values:
        left = np.einsum("sq,qij->sij", weights, squares)
        right = np.einsum("sq,qi->si", weights, products)
        found: Values = np.einsum("sij,sj->si", np.linalg.pinv(left), right)
        return found

    count = len(queries)
    random = np.random.default_rng(_SEED)
    values = solve(np.ones((1, count)))[0]
    drawn = random.multinomial(count, [1 / count] * count, SAMPLES).astype(np.float64)
    low, high = np.quantile(solve(drawn), (0.025, 0.975), axis=0)
    front, ends = (Effect(float(values[i]), float(low[i]), float(high[i])) for i in range(2))
    return Bias(front, ends)


def pairs_of(one: Presented, reverse: Presented) -> Pairs:
    """Compare two answers about at least two documents, of which `reverse` shows the reverse."""
    first, second = (
        {docid: place for place, docid in enumerate(answer.order)} for answer in (one, reverse)
    )
    same = echoed = pairs = 0
    for before, after in combinations(one.shown, 2):
        kept, turned = first[before] < first[after], second[before] < second[after]
        pairs += 1
        same += kept == turned
        echoed += kept and not turned
    return Pairs(same / pairs, echoed / pairs, (pairs - same - echoed) / pairs)


def winners_by_place(windows: Sequence[Presented], parts: int) -> list[float]:
    """The share of winners that stood in each of `parts` equal parts of the prompt."""
    counts = [0] * parts
    for window in windows:
        size = len(window.shown)
        winners = set(window.order[: max(1, round(_WINNERS * size))])
        for place, docid in enumerate(window.shown):
            counts[place * parts // size] += docid in winners
    return [count / sum(counts) for count in counts]


def _normal_equations(presented: Sequence[Presented]) -> tuple[Values, Values]:
    """X'X and X'y of one query's documents, their own means taken out."""
    import numpy as np  # noqa: PLC0415 - an extra, and slow to import

    docids = presented[0].shown
    last = len(docids) - 1
    places = np.array([[window.shown.index(d) / last for d in docids] for window in presented])
    merits = np.array([[1 - window.order.index(d) / last for d in docids] for window in presented])
    parts = np.stack((0.5 - places, (2 * places - 1) ** 2), axis=-1)
    parts -= parts.mean(axis=0)
    merits -= merits.mean(axis=0)
    rows = parts.reshape(-1, 2)
    return rows.T @ rows, rows.T @ merits.reshape(-1)
