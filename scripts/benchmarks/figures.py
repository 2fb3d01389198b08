"""Measured figures beside their targets: medians of runs, verdicts, a table, JSON and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

Curve = tuple[tuple[float, float], ...]
"""Points (x, y) of a line of a plot."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A value, one a run, whose median has to be at `least` or at `most` so much, or neither."""

    name: str
    values: tuple[float, ...]
    least: float | None = None
    most: float | None = None

    @property
    def value(self) -> float:
        """The median of the runs."""
        return median(self.values)

    @property
    def target(self) -> str:
        """In words, empty where there is none."""
        if self.least is not None:
            return f"≥ {self.least:g}"
        return "" if self.most is None else f"≤ {self.most:g}"

    @property
    def verdict(self) -> str:
        """`pass` or `FAIL`, empty where there is no target."""
        if self.least is not None:
            return "pass" if self.value >= self.least else "FAIL"
        if self.most is not None:
            return "pass" if self.value <= self.most else "FAIL"
        return ""


@dataclass(frozen=True, slots=True)
class Row:
    """What one case came to: its figures, and curves to be drawn by their names."""

    case: str
    about: str
    figures: tuple[Figure, ...]
    curves: dict[str, Curve] = field(default_factory=dict)

    def figure(self, name: str) -> Figure:
        """The figure with this name; KeyError where there is none."""
        for figure in self.figures:
            if figure.name == name:
                return figure
        raise KeyError(name)


def figure(
    name: str, value: float, *, least: float | None = None, most: float | None = None
) -> Figure:
    """A value of one run."""
    return Figure(name, (value,), least, most)


def together(rows: Sequence[Row]) -> Row:
    """The runs of one case as one row; the curves are those of the last."""
    figures = tuple(
        replace(one, values=tuple(value for row in rows for value in row.figure(one.name).values))
        for one in rows[0].figures
    )
    return replace(rows[-1], figures=figures)


def table(rows: Sequence[Row]) -> str:
    """A Markdown table of all figures; the range of the runs where there are several."""
    lines = ["| case | figure | measured | target | |", "|---|---|--:|--:|---|"]
    for row in rows:
        for number, one in enumerate(row.figures):
            case = row.case if number == 0 else ""
            spread = ""
            if len(one.values) > 1:
                spread = f" ({_short(min(one.values))} to {_short(max(one.values))})"
            lines.append(
                f"| {case} | {one.name} | {_short(one.value)}{spread} | {one.target} "
                f"| {one.verdict} |"
            )
    return "\n".join(lines)


def missed(rows: Sequence[Row]) -> list[str]:
    """The figures that miss their targets, with their cases."""
    return [
        f"{row.case}: {one.name}" for row in rows for one in row.figures if one.verdict == "FAIL"
    ]


def save(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as JSON."""
    content = [asdict(row) for row in rows]
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def load(path: Path) -> list[Row]:
    """Read what `save` wrote."""
    return [_row(row) for row in json.loads(path.read_text(encoding="utf-8"))]


def _row(row: dict[str, Any]) -> Row:
    figures = tuple(
        Figure(one["name"], tuple(one["values"]), one["least"], one["most"])
        for one in row["figures"]
    )
    curves = {name: tuple((x, y) for x, y in points) for name, points in row["curves"].items()}
    return Row(row["case"], row["about"], figures, curves)


def _short(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}"
