"""Writes the results as Markdown: all rows, then each against sliding windows."""

from __future__ import annotations

from scripts.strategies_sim.measure import Interval, Results
from scripts.strategies_sim.rows import BASELINE, SETTINGS, Reading


def tables(results: Results) -> str:
    """Two tables: nDCG@10 and costs; differences to sliding windows read in the same way."""
    return f"{_all(results)}\n\n{_against_sliding(results)}"


def _all(results: Results) -> str:
    lines = [
        _line("strategy", "reading", *(f"nDCG@10, {setting.name}" for setting in SETTINGS))
        + " calls | documents | prompt tokens | generated | depth |",
        "|---|---|" + "---|" * len(SETTINGS) + "--:|" * 5,
    ]
    for name, reading in results.entries():
        cost = results.cost(name, reading)
        scores = (str(results.ndcg(name, reading, setting.name)) for setting in SETTINGS)
        lines.append(
            _line(name, reading if cost.calls else "", *scores)
            + f" {_short(cost.calls)} | {_short(cost.documents)} | {cost.prompt_tokens:,.0f} |"
            + f" {_short(cost.generated_tokens)} | {_short(cost.depth)} |"
        )
    return "\n".join(lines)


def _against_sliding(results: Results) -> str:
    lines = [
        _line("strategy", "reading", *(f"difference, {setting.name}" for setting in SETTINGS))
        + " prompt tokens | generated | of sliding, full |",
        "|---|---|" + "---|" * len(SETTINGS) + "--:|" * 3,
    ]
    every = results.entries()
    full = results.cost(BASELINE, "full").generated_tokens
    for name, reading in every:
        cost = results.cost(name, reading)
        like: Reading = reading if (BASELINE, reading) in every else "full"
        if not cost.calls or (name, reading) == (BASELINE, like):
            continue
        sliding = results.cost(BASELINE, like)
        differences = (
            _signed(results.difference((name, reading, s.name), (BASELINE, like, s.name)))
            for s in SETTINGS
        )
        lines.append(
            _line(name, reading, *differences)
            + f" {cost.prompt_tokens / sliding.prompt_tokens:.1%} |"
            + f" {cost.generated_tokens / sliding.generated_tokens:.1%} |"
            + f" {cost.generated_tokens / full:.1%} |"
        )
    return "\n".join(lines)


def _line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _signed(interval: Interval) -> str:
    return f"{interval.mean:+.4f} ±{interval.half:.4f}"


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
