"""The nodes of a Ray cluster: a worker on each, those that come and those that go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from batchrank.backends.transport import Gate
from batchrank.distributed.link import Link, nobody_at
from batchrank.distributed.relay import Hello, ServerSource, Taken, Wanted
from batchrank.distributed.transport import NodeTransport
from batchrank.errors import BatchrankError, LostServerError, UnavailableError

T = TypeVar("T")
Place = tuple[str, int]
"""A node by its number, and which of the servers there, from 1."""
_LOOK_SECONDS = 1.0
"""Between two looks at who is in the cluster."""
_LOST_SECONDS = 30.0
"""A cluster that says nothing for so long is lost."""
_KNOCK_SECONDS = 10.0
_PATIENCE_SECONDS = 60.0
"""At the start the slower nodes are waited for so long, where others are there."""
_END_SECONDS = 5.0
"""What a worker that was killed may take until Ray says so."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What is wanted of the cluster at `address`: on each node so many servers of `source`.

    Each is reached through `workers` of its own, which take `num_gpus` each of the node and may
    take `start_seconds` until theirs answers.
    """

    address: str
    source: ServerSource
    servers: int = 1
    workers: int = 1
    num_gpus: float = 0.0
    start_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class NodeChange:
    """Nodes that came, each with a worker that answers, and nodes that are gone."""

    came: tuple[NodeTransport, ...]
    left: tuple[NodeTransport, ...]
    faults: tuple[str, ...] = ()
    """Why a node that is there can't be used."""


@asynccontextmanager
async def ray_cluster(wish: Wish, gate: Gate) -> AsyncIterator[Cluster]:
    """The cluster at `wish.address`; leaving the context ends the workers.

    Raises UsageError where Ray is not installed, NoServerError where no cluster is there.
    """
    await _knock(wish.address)
    link = await Link.to(wish.address)
    cluster = Cluster(link, wish, gate)
    try:
        yield cluster
    finally:
        await cluster.close()
        await link.close()


async def _knock(address: str) -> None:
    """See that somebody listens at an address: Ray itself would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not (colon and port.isdecimal()):
        return  # `auto`, and whatever else Ray may know
    try:
        async with asyncio.timeout(_KNOCK_SECONDS):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except (OSError, OverflowError, TimeoutError) as error:
        raise nobody_at(address, str(error) or "it does not answer") from error
    writer.close()


class Cluster:
    """Looks at the nodes again and again; `changes` says what is new since the last look."""

    def __init__(self, link: Link, wish: Wish, gate: Gate) -> None:
        self._link = link
        self._wish = wish
        self._gate = gate
        self._nodes: dict[Place, NodeTransport] = {}
        self._meetings: dict[Place, asyncio.Task[NodeTransport | str]] = {}
        self._useless: set[Place] = set()

    async def present(self) -> NodeChange:
        """The nodes that are there now: all, or those that are ready when the others take long."""
        await self._look()
        slow = set(self._meetings.values())
        if slow:
            ready, slow = await asyncio.wait(slow, timeout=_PATIENCE_SECONDS)
            while slow and all(isinstance(one.result(), str) for one in ready):
                ready, slow = await asyncio.wait(slow, return_when=asyncio.FIRST_COMPLETED)
        return await self._look()

    async def changes(self) -> AsyncIterator[NodeChange]:
        """What is new, second by second, where there is anything."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            change = await self._look()
            if change.came or change.left or change.faults:
                yield change

    async def close(self) -> None:
        """End all workers."""
        for meeting in self._meetings.values():
            meeting.cancel()
        await asyncio.gather(*self._meetings.values(), return_exceptions=True)
        await asyncio.gather(*(node.close() for node in self._nodes.values()))

    async def _look(self) -> NodeChange:
        """What is new since the last look; nodes that are new are met meanwhile."""
        alive = self._places(await self._alive())
        left = [self._nodes.pop(node) for node in self._nodes.keys() - alive.keys()]
        came, faults = [], []
        for node in [node for node, meeting in self._meetings.items() if meeting.done()]:
            met = self._meetings.pop(node).result()
            if isinstance(met, str):
                self._useless.add(node)
                faults.append(met)
            elif node in alive:
                self._nodes[node] = met
                came.append(met)
            else:
                left.append(met)
        for node in alive.keys() - self._nodes.keys() - self._meetings.keys() - self._useless:
            self._meetings[node] = asyncio.create_task(self._meet(node[0], alive[node]))
        for transport in left:
            await transport.close()
        return NodeChange(tuple(came), tuple(left), tuple(faults))

    async def _alive(self) -> dict[str, str]:
        """See `Link.alive`; raises LostServerError where the cluster is lost."""
        try:
            async with asyncio.timeout(_LOST_SECONDS):
                while self._link.is_up:
                    try:
                        return await self._link.alive()
                    except UnavailableError:
                        await asyncio.sleep(_LOOK_SECONDS)
        except TimeoutError as error:
            raise LostServerError(
                f"the Ray cluster is lost: its head has not answered for {_LOST_SECONDS:.0f} s"
            ) from error
        raise LostServerError("the Ray cluster is lost: the connection to it has ended")

    def _places(self, nodes: Mapping[str, str]) -> dict[Place, str]:
        """Where a server is to be reached, and a name for each."""
        count = self._wish.servers
        return {
            (node, number): name if count == 1 else f"{name} no. {number}"
            for node, name in nodes.items()
            for number in range(1, count + 1)
        }

    async def _meet(self, node: str, name: str) -> NodeTransport | str:
        """The way to a node's server, or why there is none."""
        wish = self._wish
        try:
            actors = [
                self._link.start(wish.source, node, wish.num_gpus) for _ in range(wish.workers)
            ]
        except UnavailableError as error:
            return f"{name}: {error}"
        workers = [_RayWorker(self._link, actor) for actor in actors]
        transport = NodeTransport(name, workers, self._gate)
        try:
            async with asyncio.timeout(wish.start_seconds):
                await transport.start()
        except BatchrankError as error:
            await transport.close()
            return f"{name}: {error}"
        except TimeoutError:
            await transport.close()
            return f"{name}: no worker started within {wish.start_seconds:g} s"
        return transport


class _RayWorker:
    """See `Worker`."""

    def __init__(self, link: Link, actor: Any) -> None:
        self._link = link
        self._actor = actor
        self._expected: set[asyncio.Future[Any]] = set()

    async def hello(self) -> Hello:
        with self._link.naming_losses():
            return await self._told(self._actor.hello.remote())

    async def put(self, wanted: Sequence[Wanted]) -> None:
        with self._link.naming_losses():
            self._actor.put.remote(wanted)  # nobody waits: if it is lost `take` says so

    async def take(self, process: int) -> Taken:
        with self._link.naming_losses():
            return await self._told(self._actor.take.remote(process))

    async def close(self) -> None:
        await self._link.kill(self._actor)
        if self._expected:
            await asyncio.wait(self._expected, timeout=_END_SECONDS)

    async def _told(self, reference: Awaitable[T]) -> T:
        told = asyncio.ensure_future(reference)
        self._expected.add(told)
        told.add_done_callback(self._came)
        # Unlike `await told` this never cancels it, which Ray's client can't bear.
        await asyncio.wait((told,))
        return told.result()

    def _came(self, told: asyncio.Future[Any]) -> None:
        self._expected.discard(told)
        if not told.cancelled():
            told.exception()  # perhaps nobody waits for it any more
