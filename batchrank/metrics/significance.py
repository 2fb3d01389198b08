"""Says how sure a difference between two runs is: paired tests, an interval, Holm's correction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

Test = Literal["randomisation", "t"]

SAMPLES = 10_000
"""Random permutations of a test, and samples of a bootstrap."""
_SEED = 20_240_229
_TIE = 1e-9
"""Sums of the same terms in another order differ by less."""
_CELLS = 4_000_000
"""Bounds memory: random numbers drawn at once."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What changed from one run to another over the same queries.

    `change` is the mean of the queries' differences, `low` to `high` its 95% bootstrap interval,
    `p` two-sided. A query within a rounding error of its old value is a tie.
    """

    change: float
    low: float
    high: float
    p: float
    wins: int
    ties: int
    losses: int

    @property
    def is_sure(self) -> bool:
        """Whether the interval leaves out that nothing changed."""
        return self.low > 0 or self.high < 0


def paired_difference(
    before: Sequence[float], after: Sequence[float], test: Test = "randomisation"
) -> Difference:
    """Compare two runs' values of the same queries, in the same order; at least one query.

    `randomisation` flips the signs of the differences at random (Fisher's test; Smucker, Allan and
    Carterette 2007 recommend it for retrieval), `t` is Student's paired test. The interval is the
    percentile bootstrap over queries. All are seeded: the same values give the same figures.
    """
    import numpy as np  # noqa: PLC0415 - an extra, and slow to import

    differences = np.asarray(after, dtype=np.float64) - np.asarray(before, dtype=np.float64)
    differences[np.abs(differences) <= _TIE] = 0
    low, high = _interval(differences)
    wins, losses = (int(np.count_nonzero(side)) for side in (differences > 0, differences < 0))
    return Difference(
        change=float(differences.mean()),
        low=low,
        high=high,
        p=_randomisation(differences) if test == "randomisation" else _student(differences),
        wins=wins,
        ties=len(differences) - wins - losses,
        losses=losses,
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct the p-values of one family of tests (Holm 1979), in the order in which they came."""
    count = len(p_values)
    corrected = [0.0] * count
    floor = 0.0
    for rank, place in enumerate(sorted(range(count), key=p_values.__getitem__)):
        floor = max(floor, min(1.0, (count - rank) * p_values[place]))
        corrected[place] = floor
    return corrected


def _randomisation(differences: Values) -> float:
    """Count the observed order among the random ones, so that p is never 0."""
    import numpy as np  # noqa: PLC0415 - an extra, and slow to import

    moved = differences[differences != 0]
    observed = abs(moved.sum()) - _TIE
    random = np.random.default_rng(_SEED)
    extreme = 0
    for rows in _blocks(len(moved)):
        signs = random.integers(0, 2, (rows, len(moved)), dtype=np.int8) * 2 - 1
        extreme += int(np.count_nonzero(np.abs(signs @ moved) >= observed))
    return (extreme + 1) / (SAMPLES + 1)


def _student(differences: Values) -> float:
    from scipy.special import stdtr  # noqa: PLC0415 - an extra, and slow to import

    count = len(differences)
    mean = float(differences.mean())
    if count < 2 or abs(mean) <= _TIE:
        return 1.0
    error = float(differences.std(ddof=1)) / sqrt(count)
    statistic = abs(mean) / error if error else inf
    return float(2 * stdtr(count - 1, -statistic))


def _interval(differences: Values) -> tuple[float, float]:
    import numpy as np  # noqa: PLC0415 - an extra, and slow to import

    count = len(differences)
    random = np.random.default_rng(_SEED)
    means = [
        differences[random.integers(0, count, (rows, count))].mean(axis=1)
        for rows in _blocks(count)
    ]
    low, high = np.quantile(np.concatenate(means), (0.025, 0.975))
    return float(low), float(high)


def _blocks(width: int) -> Iterator[int]:
    """Split the samples so that one block of rows holds a bounded number of cells."""
    rows = max(1, _CELLS // max(1, width))
    for start in range(0, SAMPLES, rows):
        yield min(rows, SAMPLES - start)
