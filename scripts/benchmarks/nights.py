"""Nightly deltas: calls and nDCG@10 of `--incremental` beside a full night, with a noisy judge."""

from __future__ import annotations

import os
from pathlib import Path

from scripts.bench_delta import measure as play
from scripts.benchmarks.figures import Row, figure
from scripts.benchmarks.processes import ROOT

SEEDS = 50
CHANGED = 5
"""Of 100 candidates, in the row that has a target."""
DATA = Path(os.environ.get("BATCHRANK_DATA", ROOT.parent / "shared" / "data")) / "dl19"


def measure(size: float) -> Row:
    """Play `size` times 50 seeds, at least 2; raises SystemExit where the judged data is absent."""
    if not DATA.is_dir():
        raise SystemExit(f"delta needs TREC DL 2019 in {DATA}; set BATCHRANK_DATA")
    seeds = max(round(SEEDS * size), 2)
    lines = play(DATA, seeds, os.cpu_count() or 1)
    nights = [line for line in lines if line.nights == 1]
    held = [line for line in nights if line.changed == CHANGED]
    figures = [figure("calls / a full night's", max(line.calls for line in held), most=0.2)]
    figures += [
        figure(
            f"nDCG@10, least of the difference ({line.setting})",
            line.difference - line.half,
            least=-0.005,
        )
        for line in held
    ]
    about = f"{CHANGED} of 100 candidates replaced, {seeds} paired seeds"
    # How many calls it takes is the same with every judge.
    calls = tuple((line.changed, line.calls) for line in nights if line.setting == held[0].setting)
    return Row("delta", about, tuple(figures), {"incremental": calls})
