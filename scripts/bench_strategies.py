"""Measures every strategy and reading on judged queries with a noisy judge, in process.

    python scripts/bench_strategies.py            # the tables on stdout
    python scripts/bench_strategies.py --write    # and into docs/strategies.md
    python scripts/bench_strategies.py --seeds 5 --json

No model is in it: the judge knows the judgements and is made worse as `strategies_sim/judge.py`
describes. What counts is how strategies compare under the same noise.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.strategies_sim.measure import Results, measure
from scripts.strategies_sim.rows import SETTINGS
from scripts.strategies_sim.table import tables

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs" / "strategies.md"
BEGIN, END = "<!-- bench_strategies: begin -->", "<!-- bench_strategies: end -->"


def main() -> None:
    """Measure, print, and write the tables into the documentation where that is asked for."""
    data = Path(os.environ.get("BATCHRANK_DATA", ROOT.parent / "shared" / "data"))
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=data / "dl19")
    parser.add_argument("--seeds", type=int, default=100, help="noise seeds, at least 2 (100)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", action="store_true", help="print JSON in place of tables")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {DOCS.name}")
    given = parser.parse_args()
    if given.seeds < 2:
        parser.error("an interval needs at least 2 seeds")
    results = measure(given.folder, given.seeds, given.processes)
    print(as_json(results) if given.json else tables(results))
    if given.write:
        head, _, rest = DOCS.read_text(encoding="utf-8").partition(BEGIN)
        _, _, tail = rest.partition(END)
        text = f"{head}{BEGIN}\n\n{tables(results)}\n\n{END}{tail}"
        DOCS.write_text(text, encoding="utf-8")


def as_json(results: Results) -> str:
    """Every row and reading: nDCG@10 with half its interval by setting, and the mean cost."""
    return json.dumps(
        [
            {
                "strategy": name,
                "reading": reading,
                "ndcg@10": {s.name: asdict(results.ndcg(name, reading, s.name)) for s in SETTINGS},
                **asdict(results.cost(name, reading)),
            }
            for name, reading in results.entries()
        ],
        indent=1,
    )


if __name__ == "__main__":
    main()
