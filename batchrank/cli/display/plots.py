"""Plots of plain text: points on two axes, and bars side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

_WIDTH = 64
_HEIGHT = 14
_BAR = 20
_MARGIN = 9
_PLACE = "place"


def scatter(points: Sequence[tuple[str, float, float]], across: str, up: str) -> list[str]:
    """Points (name of one character, x, y), x from 0 on a logarithmic axis.

    Where two meet the first one is seen.
    """
    across_values, up_values = [x for _, x, _ in points], [y for _, _, y in points]
    columns = _places([math.log1p(x) for x in across_values], _WIDTH)
    rows = _places(up_values, _HEIGHT)
    grid = [[" "] * _WIDTH for _ in range(_HEIGHT)]
    for (name, _, _), column, row in reversed(list(zip(points, columns, rows, strict=True))):
        grid[_HEIGHT - 1 - row][column] = name
    low, high = min(up_values), max(up_values)
    lines = [up]
    for number, cells in enumerate(grid):
        label = f"{high:.4f}" if number == 0 else f"{low:.4f}" if number == _HEIGHT - 1 else ""
        lines.append(f"{label:>{_MARGIN - 2}} |{''.join(cells).rstrip()}")
    left, right = (f"{end(across_values):,.0f}" for end in (min, max))
    ends = f"{left}{right:>{_WIDTH - len(left)}}"
    pad = " " * _MARGIN
    return [*lines, f"{' ' * (_MARGIN - 1)}+{'-' * _WIDTH}", pad + ends, pad + across]


def bars(places: Sequence[str], shares: Mapping[str, Sequence[float]]) -> list[str]:
    """One row a place, one column of bars a key, all to the same scale."""
    most = max(max(column) for column in shares.values()) or 1.0
    first = max(len(_PLACE), *map(len, places))
    lines = ["  ".join([_PLACE.ljust(first), *(key.ljust(_BAR + 5) for key in shares)]).rstrip()]
    for row, place in enumerate(places):
        cells = [
            f"{'#' * round(_BAR * column[row] / most):<{_BAR}}{column[row]:>5.0%}"
            for column in shares.values()
        ]
        lines.append("  ".join([place.ljust(first), *cells]))
    return lines


def _places(values: Sequence[float], cells: int) -> list[int]:
    low, high = min(values), max(values)
    return [round((value - low) / ((high - low) or 1.0) * (cells - 1)) for value in values]
