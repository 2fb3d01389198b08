"""A job on nodes that are stand-ins in the driver's own process: what a driver costs without Ray.

    python -m scripts.benchmarks.null_nodes NODES SLOTS SECONDS FIGURES run queries.jsonl …

All of batchrank works as on a cluster, and messages are pickled both ways; behind a node's worker
is nothing but a clock. FIGURES gets the windows, their rate, and the messages, as JSON.
"""

from __future__ import annotations

import asyncio
import pickle
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from heapq import heapify, heapreplace
from pathlib import Path
from unittest.mock import patch

import orjson

from batchrank.backends.transport import Gate
from batchrank.cli import main as batchrank
from batchrank.distributed.cluster import NodeChange, Wish
from batchrank.distributed.relay import Hello, Reply, Taken, Wanted
from batchrank.distributed.transport import NodeTransport
from batchrank.errors import RefusedError
from batchrank.serving import nodes
from batchrank.version import __version__
from scripts.null_server import is_window, reply_to

GATHERING = 0.05
"""Of a call's time, and at most so many seconds: how long a worker's replies wait for others."""


@dataclass(slots=True)
class Figures:
    """What all workers saw: when windows came and left, and messages either way."""

    windows: int = 0
    messages: int = 0
    ended: list[float] = field(default_factory=list)


class NullWorker:
    """A worker of a node whose server has `slots`, each of which takes `seconds` for any call."""

    def __init__(self, slots: int, seconds: float, figures: Figures) -> None:
        self._slots = slots
        self._seconds = seconds
        self._pause = min(GATHERING, GATHERING * seconds)
        self._free = [0.0] * slots
        heapify(self._free)
        self._due: dict[int, list[Reply]] = {}
        self._ready: list[Reply] = []
        self._some = asyncio.Event()
        self._figures = figures

    async def hello(self) -> Hello:
        """See `Relay.hello`."""
        return Hello(__version__, "http://null", 1)

    async def put(self, wanted: Sequence[Wanted]) -> None:
        """See `Relay.put`."""
        self._figures.messages += 1
        loop = asyncio.get_running_loop()
        for one in pickle.loads(pickle.dumps(wanted)):
            answer = reply_to(one.path.encode(), one.body or b"", self._slots)
            error = RefusedError("none such") if answer is None else None
            end = loop.time()
            if one.body is not None:
                end = max(end, self._free[0]) + self._seconds
                heapreplace(self._free, end)
            # All that ends within a pause travels together.
            moment = int(end / self._pause) + 1
            if moment not in self._due:
                self._due[moment] = []
                loop.call_at(moment * self._pause, self._reply, moment)
            self._due[moment].append(Reply(one.number, answer, error))
            if is_window(one.body or b""):
                self._figures.windows += 1
                self._figures.ended.append(end)

    async def take(self, process: int) -> Taken:
        """See `Relay.take`."""
        await self._some.wait()
        self._some.clear()
        self._figures.messages += 1
        replies, self._ready = self._ready, []
        taken: Taken = pickle.loads(pickle.dumps(Taken(replies, 0, process)))
        return taken

    async def close(self) -> None:
        """See `Relay.close`."""

    def _reply(self, moment: int) -> None:
        self._ready += self._due.pop(moment)
        self._some.set()


class NullCluster:
    """See `Cluster`; nobody comes or goes."""

    def __init__(self, transports: Sequence[NodeTransport]) -> None:
        self._transports = tuple(transports)

    async def present(self) -> NodeChange:
        """See `Cluster.present`."""
        await asyncio.gather(*(one.start() for one in self._transports))
        return NodeChange(self._transports, ())

    async def changes(self) -> AsyncIterator[NodeChange]:
        """See `Cluster.changes`."""
        await asyncio.Event().wait()
        yield NodeChange((), ())


def main() -> None:
    """See the module."""
    count, slots, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    target = Path(sys.argv[4])
    figures = Figures()

    @asynccontextmanager
    async def null_cluster(_wish: Wish, gate: Gate) -> AsyncIterator[NullCluster]:
        transports = [
            NodeTransport(f"node {number}", [NullWorker(slots, seconds, figures)], gate)
            for number in range(count)
        ]
        yield NullCluster(transports)
        for transport in transports:
            await transport.close()

    sys.argv[1:] = [*sys.argv[5:], "--engine", "ray", "--base-url", "http://null"]
    began = time.process_time()
    try:
        with patch.object(nodes, "ray_cluster", null_cluster):
            batchrank()
    finally:
        told = {**asdict(figures), "cpu": time.process_time() - began}
        target.write_bytes(orjson.dumps(told))


if __name__ == "__main__":
    main()
