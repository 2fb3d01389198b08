"""Draws the plots of `docs/performance.md`, readable on light and on dark ground."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from scripts.benchmarks.figures import Row
from scripts.benchmarks.slots import CASES

_GREY = "#808080"
_COLOURS = ("#2f81f7", "#d9822b")
_STYLE: Any = {
    "font.size": 9,
    "svg.fonttype": "none",
    "svg.hashsalt": "batchrank",
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), _GREY
    ),
}


def draw(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Write an SVG for each plot whose rows are there; returns the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    by_case = {row.case: row for row in rows}
    plots: dict[str, tuple[bool, Callable[[Axes], None]]] = {
        "slots": (
            any(name in by_case for name in _swept()),
            lambda axes: _slots(axes, by_case),
        ),
        "memory": ("scale" in by_case, lambda axes: _memory(axes, by_case["scale"])),
        "delta": ("delta" in by_case, lambda axes: _delta(axes, by_case["delta"])),
    }
    written = []
    for name, (is_there, plot) in plots.items():
        if is_there:
            path = folder / f"{name}.svg"
            _draw(plot, path)
            written.append(path)
    return written


def _draw(plot: Callable[[Axes], None], path: Path) -> None:
    with mpl.rc_context(_STYLE):
        drawing = Drawing(figsize=(5.6, 3.0), layout="constrained")
        axes = drawing.add_subplot()
        plot(axes)
        axes.grid(color=_GREY, alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
        drawing.savefig(path, transparent=True, metadata={"Date": None})


def _swept() -> list[str]:
    """The cases that differ in nothing but the server, by its slots."""
    names = [n for n, case in CASES.items() if case.has_bare and case.strategy == "segmented"]
    return sorted(names, key=lambda name: CASES[name].all_slots)


def _slots(axes: Axes, rows: dict[str, Row]) -> None:
    there = [name for name in _swept() if name in rows]
    slots = [CASES[name].all_slots for name in there]
    for label, figure, colour in (
        ("batchrank", "share of the slots' time used", _COLOURS[0]),
        ("bare client", "the bare client's share", _COLOURS[1]),
    ):
        values = [rows[name].figure(figure).value for name in there]
        axes.plot(slots, values, marker="o", color=colour, label=label)
    held = [name for name in there if CASES[name].use is not None]
    targets = [CASES[name].use or 0.0 for name in held]
    at = [CASES[name].all_slots for name in held]
    axes.plot(at, targets, linestyle="", marker="_", markersize=14, color=_GREY, label="target")
    axes.set(xscale="log", xticks=slots, xticklabels=[str(n) for n in slots], ylim=(0, 1.05))
    axes.minorticks_off()
    axes.set(xlabel="slots of the server", ylabel="share of their time used")


def _memory(axes: Axes, row: Row) -> None:
    for (name, curve), colour in zip(row.curves.items(), _COLOURS, strict=False):
        axes.plot([x for x, _ in curve], [y for _, y in curve], color=colour, label=name)
    axes.set(xscale="log", xlabel="queries asked", ylabel="memory, MB")
    axes.set_ylim(bottom=0)


def _delta(axes: Axes, row: Row) -> None:
    for (name, curve), colour in zip(row.curves.items(), _COLOURS, strict=False):
        axes.plot([x for x, _ in curve], [y for _, y in curve], "o-", color=colour, label=name)
    axes.axhline(0.2, linestyle=":", color=_GREY, label="target at 5")
    axes.set(xlabel="candidates changed, of 100", ylabel="calls / a full night's", ylim=(0, 1.05))
