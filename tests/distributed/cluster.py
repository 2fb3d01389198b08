"""A Ray cluster on this machine, each node of which has a judge and says it has GPUs.

The port of each node's own server is a variable of the node.
"""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from scripts.judge import JudgeConfig, JudgeServer, Knowledge
from tests.cli.running import free_port, serving, windows
from tests.conftest import missing

SLOTS = 4
FLYING = SLOTS + 1
"""Calls that a node's server may hold at once."""
CALL_SECONDS = 0.2
THERE = "http://127.0.0.1:${JUDGE_PORT}/v1"
QUICK = {"health_check_initial_delay_ms": 500, "health_check_period_ms": 200,
         "health_check_failure_threshold": 3}  # fmt: skip
GPUS = 2
"""Of each node but the head."""
SIZE = {"num_cpus": 0, "object_store_memory": 80_000_000}
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"  # or what serves Ray's client fails at times


class Nodes:
    """A cluster of no node at first; the first that is added is its head."""

    def __init__(
        self, cluster: Any, known: Knowledge, variables: Mapping[str, str], stack: ExitStack
    ) -> None:
        self._cluster = cluster
        self.known = known
        self._variables = variables
        self._stack = stack
        self._nodes: list[Any] = []
        self._client_port = free_port()
        self.judges: list[JudgeServer] = []
        self.ended = False
        """Whether the head is gone, and all with it."""

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    @property
    def client_address(self) -> str:
        """Where Ray's client is served."""
        return f"ray://127.0.0.1:{self._client_port}"

    def add(self, **variables: str) -> JudgeServer:
        """Another node with these variables, and its judge."""
        config = JudgeConfig(kind="llama.cpp", call_seconds=CALL_SECONDS, slots=SLOTS)
        server = self._stack.enter_context(serving(JudgeServer(config, self.known)))
        first: dict[str, object] = {
            "_system_config": QUICK,
            "include_dashboard": False,
            "ray_client_server_port": self._client_port,
        }
        if self._nodes:
            # An address of its own: a driver takes the node at its own address for its home, and
            # ends with it.
            address = f"127.0.0.{len(self._nodes) + 1}"
            first = {"node_ip_address": address, "num_gpus": GPUS}
        port = {"JUDGE_PORT": server.url.rpartition(":")[2]}
        env = {**self._variables, **variables, **port}
        self._nodes.append(self._cluster.add_node(env_vars=env, **SIZE, **first))
        self.judges.append(server)
        return server

    def kill(self, server: JudgeServer) -> None:
        """End the node of a judge as a power cut does."""
        node = self._nodes[self.judges.index(server)]
        self._cluster.remove_node(node, allow_graceful=False)
        self.ended = self.ended or node is self._nodes[0]

    def asked(self) -> Counter[str]:
        """How often each window was asked, by all judges together."""
        return Counter(body for server in self.judges for body in windows(server))


@contextmanager
def two_nodes(known: Knowledge, **variables: str) -> Iterator[Nodes]:
    """Two nodes with these variables, whose judges know `known`."""
    try:
        from ray.cluster_utils import Cluster
    except ImportError:
        missing("Ray", "pip install 'ray[client]'")
    with ExitStack() as stack:
        stack.callback(gc.collect)  # of what Ray leaves open, where its warnings are ignored
        cluster = Cluster()
        stack.callback(cluster.shutdown)
        nodes = Nodes(cluster, known, variables, stack)
        for _ in range(2):
            nodes.add()
        yield nodes
