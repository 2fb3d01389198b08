"""`eval` equals trec_eval's definition and the ir_measures command on judged collections."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from batchrank.metrics.evaluation import DEFAULT_MEASURES
from tests.cli.running import batchrank

RUNS = {"dl19": "run.bm25.trec", "noveleval": "run.first.trec", "cosqa": "run.bm25.trec"}
MEASURES = (*DEFAULT_MEASURES, "AP", "nDCG@100", "P(rel=2)@10", "NumRet", "Judged@10")


def reversed_run(source: Path, target: Path) -> Path:
    """The run with its scores negated."""
    fields = [line.split() for line in source.read_text().splitlines()]
    lines = (f"{q} Q0 {d} {rank} {-float(score)!r} back\n" for q, _, d, rank, score, _ in fields)
    target.write_text("".join(lines))
    return target


@pytest.fixture(params=RUNS)
def qrels(request: pytest.FixtureRequest, shared_data: Path) -> Path:
    return shared_data.joinpath(request.param, "qrels.txt")


@pytest.fixture(params=["as it is", "reversed"])
def run(request: pytest.FixtureRequest, qrels: Path, tmp_path: Path) -> Path:
    source = qrels.with_name(RUNS[qrels.parent.name])
    if request.param == "reversed":
        return reversed_run(source, tmp_path / "reversed.trec")
    return source


def evaluated(run: Path, qrels: Path) -> dict[str, float]:
    wanted = [argument for name in MEASURES for argument in ("--measure", name)]
    result = batchrank("eval", run, "--qrels", qrels, "--json", *wanted)
    assert result.code == 0, result.err
    return {entry["measure"]: entry["after"] for entry in result.json["measures"]}


def output_of(*command: object) -> str:
    return subprocess.run(
        list(map(str, command)), check=True, capture_output=True, text=True
    ).stdout


def test_eval_equals_the_references(run: Path, qrels: Path, shared_data: Path) -> None:
    values = evaluated(run, qrels)

    told = output_of(sys.executable, shared_data / "evaluate.py", qrels, run).split()
    assert values[told[0]] == pytest.approx(float(told[1]), abs=1e-9)

    told = output_of(
        sys.executable, "-m", "ir_measures", qrels, run, *MEASURES, "-o", "jsonl"
    ).splitlines()
    reference = {entry["measure"]: entry["value"] for entry in map(json.loads, told)}
    assert values == pytest.approx(reference, abs=1e-9)
