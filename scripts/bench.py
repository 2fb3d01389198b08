"""Measures every target of speed and size, each beside a yardstick of the same run.

    python scripts/bench.py                                  # every case once, at full size
    python scripts/bench.py --size 0.1                       # a tenth of the queries
    python scripts/bench.py --case 16x50ms --runs 3          # one case; medians of three runs
    python scripts/bench.py --json F.json --plots FOLDER
    python scripts/bench.py --redraw F.json --plots FOLDER    # no measuring

The table says `pass` or `FAIL` for what has a target; exit code 1 where one was missed.
What counts is the ratio of two measurements of one run: machines differ and are noisy.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.benchmarks import llama, nights, scale, slots
from scripts.benchmarks.figures import Row, load, missed, save, table, together

ONCE = ("delta", "scale")
"""Cases that take long and differ little from run to run."""
CASES = (*slots.CASES, *ONCE, "llama")


def main() -> None:
    """Measure or read figures, print their table, and write what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--case", action="append", choices=CASES, help="default: all")
    parser.add_argument("--size", type=float, default=1.0, help="part of each case's queries (1)")
    parser.add_argument("--runs", type=int, default=1, help=f"but one of {' and '.join(ONCE)} (1)")
    parser.add_argument("--folder", type=Path, help="where 13 KB a query have room, twice")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--plots", type=Path, help="draw plots into this folder")
    parser.add_argument("--redraw", type=Path, help="read figures that --json wrote, measure none")
    given = parser.parse_args()
    if given.redraw:
        rows = load(given.redraw)
    else:
        rows = []
        for case in given.case or CASES:
            rows.append(measure(case, given.size, given.runs, given.folder))
            print(f"{case}: {rows[-1].about}", file=sys.stderr)
            if given.json:
                given.json.parent.mkdir(parents=True, exist_ok=True)
                save(given.json, rows)
    print(table(rows))
    if given.plots:
        # Not needed to measure.
        from scripts.benchmarks.plots import draw  # noqa: PLC0415

        for path in draw(rows, given.plots):
            print(f"drawn: {path}", file=sys.stderr)
    if failures := missed(rows):
        sys.exit(f"missed: {', '.join(failures)}")


def measure(case: str, size: float, runs: int, place: Path | None) -> Row:
    """All runs of one case as one row."""
    with tempfile.TemporaryDirectory(dir=place) as name:
        folder = Path(name)
        if case == "delta":
            return nights.measure(size)
        if case == "scale":
            return scale.measure(size, folder)
        one = llama.measure if case == "llama" else partial(slots.measure, case)
        return together([one(size, folder) for _ in range(runs)])


if __name__ == "__main__":
    main()
