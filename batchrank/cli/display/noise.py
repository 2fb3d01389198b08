"""The model's own noise beside the difference between runs, as text and for --json."""

from __future__ import annotations

from dataclasses import asdict

from batchrank.cli.display.columns import sentence, table
from batchrank.formats.wording import counted
from batchrank.measuring.comparison import Comparison, Pair
from batchrank.measuring.noise import Noise, mean_size


def noise_lines(own: Noise, found: Comparison | None, cutoff: int) -> list[str]:
    """The noise below what `compare` found; `found` None where nothing is judged."""
    asked = counted(own.queries, "query", "queries")
    lines = ["", *sentence(f"the model's own noise: {asked} asked twice, {own.calls:,} calls"), ""]
    alike = own.likeness
    tau = "-" if alike.tau is None else f"{alike.tau:.4f}"
    header = ("runs", f"overlap@{cutoff}", "Kendall tau", "RBO")
    lines += table(header, [("asked twice", f"{alike.overlap:.4f}", tau, f"{alike.rbo:.4f}")])
    if found is None or own.measured is None:
        return lines
    rows = []
    for twice in own.measured.pairs:
        rows.append(_row("asked twice", own.measured, twice))
        rows += [
            _row(f"{chr(ord('A') + pair.first)} to {chr(ord('A') + pair.second)}", found, pair)
            for pair in found.pairs
            if pair.change.measure == twice.change.measure
        ]
    by_measure = ("measure", "runs", "change", "95% interval", "size a query")
    return [
        *lines,
        "",
        *table(by_measure, rows, texts=2),
        "",
        *sentence("size a query: how much one query changes on average, up or down"),
    ]


def noise_value(own: Noise) -> dict[str, object]:
    """The noise, for --json."""
    alike = own.likeness
    measured = own.measured
    return {
        "queries": own.queries,
        "calls": own.calls,
        "overlap": alike.overlap,
        "tau": alike.tau,
        "rbo": alike.rbo,
        "measures": [
            {
                "measure": pair.change.measure,
                **asdict(pair.change.difference),
                "size": mean_size(measured, pair),
            }
            for pair in measured.pairs
        ]
        if measured is not None
        else [],
    }


def _row(runs: str, found: Comparison, pair: Pair) -> tuple[str, ...]:
    difference = pair.change.difference
    return (
        pair.change.measure,
        runs,
        f"{difference.change:+.4f}",
        f"{difference.low:+.4f} to {difference.high:+.4f}",
        f"{mean_size(found, pair):.4f}",
    )
