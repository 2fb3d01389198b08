"""Models embedded in a Ray cluster: each node loads its own and is a server like any other."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.cli.running import batchrank, docids, requests, rows_of, written
from tests.distributed.cluster import Nodes
from tests.distributed.conftest import SMALL
from tests.embedded.conftest import smollm2
from tests.embedded.standin import model_folder, processes, windows
from tests.embedded.test_restart import when
from tests.waiting import until

__all__ = ["smollm2"]

pytestmark = [
    pytest.mark.xdist_group("ray"),  # one cluster for all
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),  # logs of Ray's own
]


@pytest.fixture(scope="module")
def model(standins: Path) -> Path:
    return model_folder(standins.parent / "Small-Instruct")


@pytest.fixture
def embedded(expected: bytes, model: Path) -> bytes:
    """The output on one machine, by this model."""
    return expected.replace(b'"model":"judge"', f'"model":"{model.name}"'.encode())


def job(nodes: Nodes, source: Path, model: Path, *more: object) -> tuple[object, ...]:
    where = ("--engine", "ray", "--ray-address", nodes.address, "--wait-for-server", "60s")
    what = ("--backend", "embedded", "--model-path", model)
    return ("run", source, "--store", source.parent / "store.sqlite", *where, *what, *more)


def answered(metrics: Path) -> dict[str, int]:
    """The calls that each server answered."""
    pattern = r'^batchrank_calls_total\{endpoint="([^"]+)",outcome="answered",.*\} (\d+)'
    return {one: int(calls) for one, calls in re.findall(pattern, metrics.read_text(), re.M)}


def test_each_node_runs_llama_cpp(nodes: Nodes, smollm2: Path, tmp_path: Path) -> None:
    rows = requests(queries=2, candidates=3)
    source, metrics = written(tmp_path / "in.jsonl", rows), tmp_path / "m.prom"
    # Short prompts: a model of this size takes its time where other tests run beside it.
    small = ("--strategy", "pointwise", "--answer", "likelihood", "--max-doc-tokens", 10)
    found = batchrank(*job(nodes, source, smollm2, *small, "--metrics-textfile", metrics))
    assert found.code == 0, found.err
    for row, wanted in zip(rows_of(tmp_path / "in.ranked.jsonl"), rows, strict=True):
        assert sorted(docids(row)) == sorted(one["docid"] for one in wanted["candidates"])
    calls = answered(metrics)
    assert len(calls) == 2
    assert all(calls.values())


def parent(process: int) -> int:
    """The process that started another."""
    stat = Path(f"/proc/{process}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


@pytest.mark.parametrize(
    ("victim", "told"),
    [
        ("the server", "vLLM has ended: it was ended by SIGKILL; it is loaded again"),
        ("the worker", "its worker is lost"),
    ],
)
def test_the_output_is_that_of_one_machine_whoever_dies(
    nodes: Nodes,
    source: Path,
    model: Path,
    embedded: bytes,
    standins: Path,
    victim: str,
    told: str,
) -> None:
    before = windows(standins)

    def kill() -> None:
        # It watches over vLLM, and is a child of the worker.
        watch = min(processes("vllm_program", str(model)))
        servers = {one for one in processes("judge_server", str(standins)) if parent(one) == watch}
        os.kill(servers.pop() if victim == "the server" else parent(watch), signal.SIGKILL)

    killer = when(lambda: windows(standins) - before >= 12, kill)
    found = batchrank(*job(nodes, source, model, *SMALL))
    killer.join()
    assert found.code == 0, found.err
    assert source.with_suffix(".ranked.jsonl").read_bytes() == embedded
    assert told in found.err
    until(lambda: not processes("judge_server", str(standins)))


def test_a_node_that_lacks_the_file_is_named(nodes: Nodes, source: Path, tmp_path: Path) -> None:
    found = batchrank(*job(nodes, source, tmp_path / "absent.gguf"))
    assert found.code == 4, found.err
    for node in ("127.0.0.2", ""):
        pattern = (
            rf"a node can't be used: {node}\S* \(\w+\): The model .*absent\.gguf can't be read"
        )
        assert re.search(pattern, found.err), found.err
    assert "no node of the Ray cluster can be used" in found.err


def test_a_model_takes_the_gpus_it_is_given(
    nodes: Nodes, source: Path, model: Path, embedded: bytes
) -> None:
    models = ("--num-gpus", 1, "--workers-per-node", 2)
    found = batchrank(*job(nodes, source, model, *SMALL, *models))
    assert found.code == 0, found.err
    assert "fewer GPUs than num_gpus" in found.err
    assert source.with_suffix(".ranked.jsonl").read_bytes() == embedded
