"""The charts of a report, each drawn twice: for a wide page and for a narrow one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from batchrank.measuring.comparison import Change
from batchrank.reporting.drawing import COLOURS, drawing
from batchrank.reporting.facts import BANDS, Latency, Movement, Slots, Winners
from batchrank.values import Tally

FULL = 1016
HALF = 466
NARROW = 326
_BAR = 0.78
_STEPS = (1, 2, 5, 10)
_MOST_ROWS = 60
_LINE = 14
"""From one line of text to the next, in pixels."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing for either width of page, what it shows, and its figures as a table."""

    wide: Markup
    narrow: Markup
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


Draw = Callable[[Axes], None]


def slots_chart(found: Sequence[Slots]) -> Chart:
    """Calls in flight and slots, over the night."""
    last = max(one.began + one.step * len(one.in_flight) for one in found)
    unit, name = (3600, "h") if last >= 2 * 3600 else (60, "min") if last >= 120 else (1, "s")

    def draw(axes: Axes) -> None:
        for one in found:
            edges = [(one.began + one.step * n) / unit for n in range(len(one.in_flight) + 1)]
            axes.stairs(one.in_flight, edges, fill=True, color=COLOURS["accent"])
            axes.stairs(one.capacity, edges, baseline=None, color=COLOURS["ink"], linewidth=1.5)
        axes.set_xlim(0, last / unit)
        axes.set_ylim(0, 1.15 * max(max(one.capacity + one.in_flight) for one in found) or 1)
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=_STEPS))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} {name}"))
        _count_axis(axes)

    steps = [
        (one.began + one.step * n, used, offered)
        for one in found
        for n, (used, offered) in enumerate(zip(one.in_flight, one.capacity, strict=True))
    ]
    stride = -(-len(steps) // _MOST_ROWS)
    rows = [
        (f"{at / unit:.4g} {name}", f"{used:.1f}", f"{offered:.0f}")
        for at, used, offered in steps[::stride]
    ]
    label = "Calls in flight over the night, beneath the line of calls that might be in flight"
    return _chart("slots", label, draw, (FULL, 190), 170, ("from", "in flight", "slots"), rows)


def latency_chart(found: Latency) -> Chart:
    """Calls by how long they took."""
    edges = [found.width * n for n in range(len(found.counts) + 1)]

    def draw(axes: Axes) -> None:
        axes.stairs(found.counts, edges, fill=True, color=COLOURS["accent"])
        # One beside its line, the other a line of text below: they may be at the same place.
        for row, (share, value) in enumerate((("median", found.median), ("99%", found.p99))):
            if value <= edges[-1]:
                axes.axvline(value, color=COLOURS["ink"], linewidth=1, linestyle=(0, (3, 2)))
                is_right = value > edges[-1] * 0.6
                axes.annotate(
                    share,
                    (value, 1.0),
                    xycoords=("data", "axes fraction"),
                    xytext=(-4 if is_right else 4, -row * _LINE),
                    textcoords="offset points",
                    ha="right" if is_right else "left",
                    va="top",
                )
        axes.set_xlim(0, edges[-1])
        axes.set_ylim(0, max(found.counts) * 1.4)
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=_STEPS))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} s"))
        _count_axis(axes)

    last = len(found.counts) - 1
    rows = [
        (f"{edges[n]:.4g} s", "more" if n == last else f"{edges[n + 1]:.4g} s", f"{count:,}")
        for n, count in enumerate(found.counts)
    ]
    label = f"Calls by seconds: half took at most {found.median:.3g} s, 99% at most {found.p99:.3g}"
    return _chart("latency", label, draw, (HALF, 190), 180, ("from", "to", "calls"), rows)


def windows_chart(tally: Tally) -> Chart:
    """Windows by how they ended."""
    parts = {
        "ok": (tally.ok, "good"),
        "repaired": (tally.repaired, "repaired"),
        "fallback": (tally.fallback, "warn"),
        "error": (tally.error, "bad"),
    }

    def draw(axes: Axes) -> None:
        left = 0
        for count, colour in parts.values():
            axes.barh(0, count, left=left, color=COLOURS[colour], height=1)
            left += count
        axes.set_xlim(0, max(left, 1))
        axes.set_ylim(-0.5, 0.5)
        axes.set_axis_off()

    label = ", ".join(f"{count:,} {name}" for name, (count, _) in parts.items())
    return _chart("windows", label, draw, (HALF, 18), 18)


def origins_chart(found: Movement) -> Chart:
    """Where the documents of the top stood in the first stage."""
    names = [f"{low}–{high}" if high else f"{low} on" for low, high in BANDS]
    shares = _shares(found.origins)
    label = "Documents of the new top 10 by their first-stage rank"
    return _bars("origins", label, names, shares, found.origins, ("rank", "share", "documents"))


def fresh_chart(found: Movement) -> Chart:
    """Queries by how many documents came up into their top."""
    names = [str(n) for n in range(len(found.fresh))]
    shares = _shares(found.fresh)
    label = "Queries by the number of documents that are new in their top 10"
    return _bars("fresh", label, names, shares, found.fresh, ("new", "share", "queries"))


def winners_chart(found: Winners) -> Chart:
    """The share of winners by their place in the prompt."""
    parts = len(found.shares)
    names = [_part(place, parts) for place in range(parts)]
    label = "Winners by their place in the prompt, front first"
    return _bars(
        "winners", label, names, found.shares, None, ("place", "winners"), chance=1 / parts
    )


def measures_chart(changes: Sequence[Change]) -> Chart:
    """The change of each measure with its interval."""
    shown = list(reversed(changes))

    def draw(axes: Axes) -> None:
        for row, made in enumerate(shown):
            change = made.difference
            better = "good" if change.change > 0 else "bad"
            colour = COLOURS[better if change.is_sure else "quiet"]
            axes.plot([change.low, change.high], [row, row], color=colour, linewidth=2)
            axes.plot([change.change], [row], "o", color=colour, markersize=7)
        axes.axvline(0, color=COLOURS["ink"], linewidth=1)
        axes.set_yticks(range(len(shown)), [made.measure for made in shown])
        axes.set_ylim(-0.6, len(shown) - 0.4)
        axes.margins(x=0.08)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_major_formatter(FuncFormatter(_change))
        axes.grid(axis="x")

    label = "; ".join(
        f"{made.measure} {made.difference.change:+.3f}, 95% interval {made.difference.low:+.3f} "
        f"to {made.difference.high:+.3f}"
        for made in changes
    )
    height = 46 + 28 * len(shown)
    return _chart("measures", label, draw, (FULL, height), height)


def _bars(
    name: str,
    label: str,
    names: Sequence[str],
    shares: Sequence[float],
    counts: Sequence[int] | None,
    header: tuple[str, ...],
    *,
    chance: float | None = None,
) -> Chart:
    def draw(axes: Axes) -> None:
        places = range(len(names))
        axes.bar(places, shares, width=_BAR, color=COLOURS["accent"])
        top = max([*shares, chance or 0.0]) or 1.0
        for place, share in zip(places, shares, strict=True):
            if share:
                # Above the bar, but for where the line of chance is.
                is_inside = chance is not None and share > top / 3
                axes.annotate(
                    f"{share:.0%}" if share >= 0.005 else "<1%",
                    (place, share / 2 if is_inside else share),
                    xytext=(0, 3),
                    textcoords="offset points",
                    ha="center",
                    color=COLOURS["card" if is_inside else "quiet"],
                )
        if chance is not None:
            axes.axhline(chance, color=COLOURS["ink"], linewidth=1, linestyle=(0, (3, 2)))
        axes.set_xticks(list(places), names)
        axes.set_xlim(-0.6, len(names) - 0.4)
        axes.set_ylim(0, top * 1.18)
        axes.set_yticks([])

    rows = [
        (part, f"{share:.1%}", *((f"{counts[n]:,}",) if counts is not None else ()))
        for n, (part, share) in enumerate(zip(names, shares, strict=True))
    ]
    return _chart(name, label, draw, (HALF, 190), 180, header, rows)


def _chart(
    name: str,
    label: str,
    draw: Draw,
    size: tuple[int, int],
    narrow_height: int,
    header: tuple[str, ...] = (),
    rows: Sequence[tuple[str, ...]] = (),
) -> Chart:
    def drawn(width: int, height: int, kind: str) -> Markup:
        with drawing(width, height) as figure:
            draw(figure.axes)
            return figure.svg(f"{name}-{kind}", label)

    return Chart(drawn(*size, "w"), drawn(NARROW, narrow_height, "n"), header, tuple(rows))


def _change(value: float, _: object = None) -> str:
    return f"{value:+.2g}".replace("-", "−") if abs(value) > 1e-9 else "0"


def _count_axis(axes: Axes) -> None:
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True, steps=(1, 2, 4, 5, 10)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value else ""))
    axes.grid(axis="y")


def _shares(counts: Sequence[int]) -> list[float]:
    total = sum(counts)
    return [count / total if total else 0.0 for count in counts]


def _part(place: int, parts: int) -> str:
    return f"{100 * place // parts}–{100 * (place + 1) // parts}%"
