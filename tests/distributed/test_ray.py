"""A job on a Ray cluster gives what it gives on one machine, whatever becomes of nodes and driver.

All nodes are on this machine, so the port of each node's own server is a variable of the node.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from scripts.judge import JudgeServer
from tests.cli.running import batchrank, judge, requests, serving, started, until, windows, written
from tests.conftest import missing

ROWS = requests(queries=40, candidates=12)
WINDOWS = 120
"""Two segments and a merge a query."""
SLOTS = 4
FLYING = SLOTS + 1
"""Calls that a node's server may hold at once."""
QUICK = {"health_check_initial_delay_ms": 500, "health_check_period_ms": 200,
         "health_check_failure_threshold": 3}  # fmt: skip
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
pytestmark = pytest.mark.xdist_group("ray")  # one cluster for all


class Nodes:
    """A cluster, each node of which has a judge of its own."""

    def __init__(self, cluster: Any, stack: ExitStack) -> None:
        self._cluster = cluster
        self._stack = stack
        self._nodes: list[Any] = []
        self.judges: list[JudgeServer] = []

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def add(self) -> JudgeServer:
        """Another node, and its judge."""
        server = self._stack.enter_context(
            serving(judge(ROWS, call_seconds=0.2, slots=SLOTS, kind="llama.cpp"))
        )
        first: dict[str, object] = {"_system_config": QUICK, "include_dashboard": False}
        if self._nodes:
            # An address of its own: a driver takes the node at its own address for its home, and
            # ends with it.
            first = {"node_ip_address": f"127.0.0.{len(self._nodes) + 1}"}
        node = self._cluster.add_node(
            num_cpus=0,
            object_store_memory=80_000_000,
            env_vars={"JUDGE_PORT": server.url.rpartition(":")[2]},
            **first,
        )
        self._nodes.append(node)
        self.judges.append(server)
        return server

    def kill(self, server: JudgeServer) -> None:
        """End the node of a judge as a power cut does."""
        node = self._nodes[self.judges.index(server)]
        self._cluster.remove_node(node, allow_graceful=False)

    def asked(self) -> Counter[str]:
        """How often each window was asked, by all judges together."""
        return Counter(body for server in self.judges for body in windows(server))


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    try:
        from ray.cluster_utils import Cluster
    except ImportError:
        missing("Ray", "pip install ray")
    with ExitStack() as stack:
        cluster = Cluster()
        stack.callback(cluster.shutdown)
        found = Nodes(cluster, stack)
        for _ in range(2):
            found.add()
        yield found


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return written(tmp_path / "in.jsonl", ROWS)


def job(nodes: Nodes, source: Path, *more: object) -> tuple[object, ...]:
    where = ("--engine", "ray", "--ray-address", nodes.address)
    there = ("--base-url", "http://127.0.0.1:${JUDGE_PORT}/v1")
    store = source.parent / "store.sqlite"
    return ("run", source, "--store", store, "--window-size", 6, *where, *there, *more)


@pytest.fixture
def expected(source: Path) -> bytes:
    """The output on one machine."""
    with serving(judge(ROWS, kind="llama.cpp", slots=SLOTS)) as server:
        target = source.parent / "local.jsonl"
        where = ("--store", source.parent / "local.sqlite", "--base-url", server.url)
        found = batchrank("run", source, "-o", target, "--window-size", 6, *where)
        assert found.code == 0, found.err
    return target.read_bytes()


def test_a_cluster_that_is_not_there_is_said_at_once(nodes: Nodes, source: Path) -> None:
    arguments = job(nodes, source)
    found = batchrank(*("127.0.0.1:1" if one == nodes.address else one for one in arguments))
    assert found.code == 4
    assert "no Ray cluster can be joined at 127.0.0.1:1" in found.err
    assert len(found.err.splitlines()) == 1


def test_the_output_is_that_of_one_machine(nodes: Nodes, source: Path, expected: bytes) -> None:
    before = nodes.asked().total()
    found = batchrank(*job(nodes, source, "--workers-per-node", 2))
    assert found.code == 0, found.err
    assert "warning" not in found.err
    assert source.with_suffix(".ranked.jsonl").read_bytes() == expected
    assert nodes.asked().total() - before == WINDOWS
    assert all(windows(server) for server in nodes.judges)


def test_nodes_may_die_and_come_and_nothing_is_lost(
    nodes: Nodes, source: Path, expected: bytes
) -> None:
    before = nodes.asked()
    doomed = nodes.judges[1]
    had = len(windows(doomed))
    process = started(*job(nodes, source), cwd=source.parent)
    with process:
        until(lambda: len(windows(doomed)) - had >= 6)
        nodes.kill(doomed)
        latest = nodes.add()
        _, told = process.communicate(timeout=60)
    assert process.returncode == 0, told
    assert source.with_suffix(".ranked.jsonl").read_bytes() == expected
    assert windows(latest), told
    assert "has joined" in told
    asked = nodes.asked() - before
    assert len(asked) == WINDOWS
    assert asked.total() - WINDOWS <= FLYING


def test_a_driver_that_is_stopped_or_killed_is_resumed_by_the_same_command(
    nodes: Nodes, source: Path, expected: bytes
) -> None:
    before = nodes.asked()
    with started(*job(nodes, source), cwd=source.parent) as stopped:
        until(lambda: (nodes.asked() - before).total() >= WINDOWS // 4)
        stopped.send_signal(signal.SIGTERM)
        _, told = stopped.communicate(timeout=60)
    assert stopped.returncode == 75, told
    assert max((nodes.asked() - before).values()) == 1
    with started(*job(nodes, source), cwd=source.parent) as killed:
        until(lambda: (nodes.asked() - before).total() >= WINDOWS // 2)
        killed.kill()
    found = batchrank(*job(nodes, source))
    assert found.code == 0, found.err
    assert source.with_suffix(".ranked.jsonl").read_bytes() == expected
    asked = nodes.asked() - before
    assert len(asked) == WINDOWS
    assert asked.total() - WINDOWS <= len(nodes.judges) * FLYING
