"""A real llama-server: tokens a second under batchrank beside a plain load of the same prompts.

Every window is a query's only one, so that no prompt depends on an answer: real servers answer
differently from run to run. Each client gets a server of its own, whose cache is empty.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from scripts.benchmarks.figures import Row, figure
from scripts.benchmarks.inputs import make_input
from scripts.benchmarks.processes import ROOT, batchrank, run, server

MODEL = ROOT / ".cache" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
SLOTS = 4
CONTEXT = 4096
QUERIES = 60
CANDIDATES = 10
TEXT_BYTES = 200
"""About 100 tokens of this model."""
WINDOW = "[10]"
"""Stands in the windows of the job; the preflight shows fewer documents."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a client got out of a server: tokens, of prompts and answers, and the calls it made."""

    tokens_a_second: float
    calls: Path


def measure(size: float, folder: Path) -> Row:
    """Batchrank, then the same prompts four at a time; SystemExit where the model is absent."""
    if not MODEL.is_file():
        raise SystemExit("llama needs a model: make model")
    queries = max(round(QUERIES * size), 2 * SLOTS)
    source, stamp = folder / "llama.jsonl", time.monotonic_ns()
    make_input(source, queries, CANDIDATES, TEXT_BYTES)
    store = str(folder / f"{stamp}.sqlite")
    job = batchrank("run", str(source), "--store", store, "-o", os.devnull)
    # A model so small gives many unusable answers, and would be asked again for each of them.
    job += ["--strategy", "single", "--max-fallback", "1", "--no-re-ask", "--base-url", "URL"]
    job += ["--window-size", str(CANDIDATES), "--max-doc-tokens", "100"]
    ours = load(folder / f"{stamp}-ours.jsonl", job)
    bare = [sys.executable, str(ROOT / "scripts" / "bare_client.py"), "URL"]
    bare += [str(ours.calls), str(SLOTS), "--recorded"]
    plain = load(folder / f"{stamp}-plain.jsonl", bare)
    return Row(
        "llama",
        f"{queries} windows of {CANDIDATES}, SmolLM2 135M, {SLOTS} slots",
        (
            figure(
                "tokens a second / a plain load's",
                ours.tokens_a_second / plain.tokens_a_second,
                least=0.97,
            ),
            figure("tokens a second", ours.tokens_a_second),
        ),
    )


def load(calls: Path, command: list[str]) -> Load:
    """Run `command` (URL put in) against a server of its own, its windows written to `calls`."""
    log = calls.with_suffix(".log")
    with (
        server("llama_server.py", str(MODEL), str(CONTEXT), str(SLOTS)) as model,
        server("recording_proxy.py", model, str(log)) as url,
    ):
        run([url if part == "URL" else part for part in command])
    with log.open(encoding="utf-8") as file:
        rows = [row for line in file if WINDOW in (row := json.loads(line))["body"]]
    if bad := [row["status"] for row in rows if row["status"] != 200]:
        raise SystemExit(f"llama-server answered {bad[0]} to {len(bad)} of {len(rows)} calls")
    with calls.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    seconds = max(row["time"] + row["seconds"] for row in rows) - min(row["time"] for row in rows)
    return Load(sum(row["tokens"] for row in rows) / seconds, calls)
