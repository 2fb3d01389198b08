"""The servers of a Ray cluster's nodes, as a job's backends."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager

from batchrank.backends.base import Backend
from batchrank.backends.embedded.transport import EmbeddedModel
from batchrank.backends.transport import Gate, Transport
from batchrank.distributed.cluster import Cluster, NodeChange, Wish, ray_cluster
from batchrank.distributed.relay import NodeServer
from batchrank.errors import NoServerError
from batchrank.serving.membership import Changed
from batchrank.spec.jobspec import JobSpec
from batchrank.spec.times import parse_duration

Make = Callable[[Transport], Backend]


@asynccontextmanager
async def nodes_of(
    spec: JobSpec,
    model: EmbeddedModel | None,
    make: Make,
    say: Callable[[str], None],
    gate: Gate,
) -> AsyncIterator[Nodes]:
    """The nodes of the cluster of `spec`; leaving the context ends what was started there.

    Each loads `model`, or has a server of its own. `make` is given the way to a node.
    Raises NoServerError where no node can be used.
    """
    wish = _wish(spec, model)
    async with ray_cluster(wish, gate) as cluster:
        nodes = Nodes(cluster, make, say)
        await nodes.look()
        if not nodes.present:
            raise NoServerError(f"no node of the Ray cluster can be used: {nodes.why_none}")
        yield nodes


def _wish(spec: JobSpec, model: EmbeddedModel | None) -> Wish:
    if model is not None:
        return Wish(
            spec.ray_address,
            model,
            servers=spec.workers_per_node,
            num_gpus=spec.num_gpus,
            start_seconds=parse_duration(spec.wait_for_server),
        )
    (server,) = spec.servers
    assert server.base_url is not None
    source = NodeServer(server.base_url, server.api_key_env, spec.insecure)
    return Wish(spec.ray_address, source, workers=spec.workers_per_node)


class Nodes:
    """`present` are the servers of the nodes, whether they answer or not."""

    def __init__(self, cluster: Cluster, make: Make, say: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._make = make
        self._say = say
        self._backends: dict[Transport, Backend] = {}
        self._fault: str | None = None

    @property
    def present(self) -> list[Backend]:
        """The servers of the nodes that are there."""
        return list(self._backends.values())

    @property
    def why_none(self) -> str:
        """What is wrong with the last node that can't be used."""
        return self._fault or "none is there; start one with `ray start`"

    async def look(self) -> None:
        """See who is there, at first."""
        self._told(await self._cluster.present())

    async def changes(self) -> AsyncGenerator[Changed, None]:
        """The servers that come and go from then on."""
        async for change in self._cluster.changes():
            yield self._told(change)

    def _told(self, change: NodeChange) -> Changed:
        for fault in change.faults:
            self._say(f"warning: a node can't be used: {fault}")
            self._fault = fault
        came: dict[Transport, Backend] = {one: self._make(one) for one in change.came}
        self._backends |= came
        left = [self._backends.pop(one) for one in change.left if one in self._backends]
        for backend in left:
            self._say(f"warning: {backend.url} has left the cluster")
        return Changed(tuple(came.values()), tuple(left))
