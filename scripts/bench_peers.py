"""Measures other rerankers beside batchrank: the same queries, windows and slot server.

    python3.12 -m venv rank_llm    # and there: pip install 'rank-llm[openai,litellm]==0.26.0'
    python3.12 -m venv rerankers   # and there: pip install 'rerankers[gpt]==0.10.0'
    python scripts/bench_peers.py --rank-llm-python rank_llm/bin/python \\
        --rerankers-python rerankers/bin/python

Every client asks in sliding windows, 20 documents with stride 10, and keeps as many queries open as
it has threads: as many as slots, and a quarter more, as batchrank does. What is not installed is
named and left out.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.benchmarks.inputs import make_input
from scripts.benchmarks.processes import ROOT
from scripts.benchmarks.slots import (
    CANDIDATES,
    TEXT_BYTES,
    Case,
    against_judges,
    bare_command,
    batchrank_command,
)

OFFLINE = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_TELEMETRY": "False",
    "HF_HUB_OFFLINE": "1",
}
"""LiteLLM looks up prices on the internet when it is imported, unless it is told not to."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Another reranker: the module that a Python must have, and the script that runs it."""

    name: str
    module: str
    script: str

    def absent(self, python: Path | None) -> str | None:
        """Why it can't be measured, None where it can."""
        option = f"--{self.module.replace('_', '-')}-python"
        if python is None:
            return f"{self.name}: left out, no {option}"
        try:
            found = subprocess.run(
                [
                    python,
                    "-c",
                    f"import importlib.util as u; exit(not u.find_spec('{self.module}'))",
                ],
                check=False,
            )
        except OSError as error:
            return f"{self.name}: left out, {option} {python}: {error.strerror}"
        return f"{self.name}: left out, {python} has none" if found.returncode else None

    def command(self, python: Path, threads: int, source: Path) -> list[str]:
        """Its command line, with URL0 in place of the server's address."""
        script = ROOT / "scripts" / "peers" / self.script
        return [str(python), str(script), "URL0", str(source), str(threads)]


PEERS = (
    Peer("rank_llm", "rank_llm", "rank_llm_client.py"),
    Peer("rerankers", "rerankers", "rerankers_client.py"),
)


def main() -> None:
    """Print a row for each client that is there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for peer in PEERS:
        option = f"--{peer.module.replace('_', '-')}-python"
        parser.add_argument(option, dest=peer.module, type=Path, help=f"that has {peer.name}")
    parser.add_argument("--slots", type=int, default=16)
    parser.add_argument("--call-ms", type=float, default=50)
    parser.add_argument("--queries", type=int, default=200)
    given = parser.parse_args()
    os.environ.update(OFFLINE)
    case = Case((given.slots,), given.call_ms / 1000, strategy="sliding")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = {}
        for count in (given.queries // 4, given.queries):
            sources[count] = folder / f"{count}.jsonl"
            make_input(sources[count], count, CANDIDATES, TEXT_BYTES)
        print("| client | share of the slots' time | queries an hour | CPU a call, ms |")
        print("|---|--:|--:|--:|")

        def measure(name: str, command_for: Callable[[Path], list[str]]) -> None:
            few, many = (
                against_judges(folder, case, command_for(source), count)
                for count, source in sources.items()
            )
            used = many.rate * case.call_seconds / case.all_slots
            hourly = many.rate / case.calls(1) * 3600
            cpu = (many.cpu - few.cpu) / (many.calls - few.calls)
            print(f"| {name} | {used:.3f} | {hourly:,.0f} | {cpu * 1000:.2f} |", flush=True)

        measure("bare client", partial(bare_command, case))
        measure("batchrank", partial(batchrank_command, case))
        for peer in PEERS:
            python = getattr(given, peer.module)
            if (why := peer.absent(python)) is None:
                measure(peer.name, partial(peer.command, python, case.in_flight))
            else:
                print(why, file=sys.stderr)


if __name__ == "__main__":
    main()
