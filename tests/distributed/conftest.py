"""One cluster for all tests of this folder, and what a job gives without it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from scripts.judge import JudgeConfig, JudgeServer, Knowledge
from tests.cli.running import batchrank, knowledge, requests, serving, written
from tests.conftest import data_folder
from tests.distributed.cluster import SLOTS, Nodes, two_nodes
from tests.dl19 import knowledge_of_dl19
from tests.embedded.standin import vllm

ROWS = requests(queries=40, candidates=12)
SMALL = ("--window-size", 6)
WINDOWS = 120
"""Two segments and a merge a query."""


@pytest.fixture(scope="package")
def known(tmp_path_factory: pytest.TempPathFactory) -> Knowledge:
    rows = knowledge(ROWS)
    if (data := data_folder()) is None:
        return rows
    more = knowledge_of_dl19(data / "dl19", tmp_path_factory.mktemp("dl19") / "dl19.jsonl")
    return Knowledge(
        {**rows.documents, **more.documents},
        {**rows.queries, **more.queries},
        {**rows.gains, **more.gains},
    )


@pytest.fixture(scope="package")
def standins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of a vLLM that all nodes have in their PATH."""
    folder = tmp_path_factory.mktemp("standin")
    return vllm(folder / "vllm", ROWS, "--call-seconds", "0.05", "--slots", "2")


@pytest.fixture(scope="package")
def cluster(known: Knowledge, standins: Path) -> Iterator[Callable[[], Nodes]]:
    """Gives the cluster that tests share, and a new one where a test ended it."""
    path = f"{standins.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"
    latest: Nodes | None = None
    with ExitStack() as stack:

        def shared() -> Nodes:
            nonlocal latest
            if latest is None or latest.ended:
                stack.close()
                # Two models on the same few cores, each of which thinks that they are its own.
                latest = stack.enter_context(two_nodes(known, PATH=path, OMP_WAIT_POLICY="passive"))
            return latest

        yield shared


@pytest.fixture
def nodes(cluster: Callable[[], Nodes]) -> Nodes:
    return cluster()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return written(tmp_path / "in.jsonl", ROWS)


def on_one_machine(known: Knowledge, source: Path, *more: object) -> bytes:
    """The output without Ray, by a server that answers at once."""
    with serving(JudgeServer(JudgeConfig(kind="llama.cpp", slots=SLOTS), known)) as server:
        target = source.parent / "local.jsonl"
        where = ("--store", source.parent / "local.sqlite", "--base-url", server.url)
        found = batchrank("run", source, "-o", target, *where, *more)
        assert found.code == 0, found.err
    return target.read_bytes()


@pytest.fixture(scope="package")
def expected(known: Knowledge, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    source = written(tmp_path_factory.mktemp("expected") / "in.jsonl", ROWS)
    return on_one_machine(known, source, *SMALL)
