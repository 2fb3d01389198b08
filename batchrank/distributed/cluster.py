"""The nodes of a Ray cluster: a worker on each, those that come and those that go."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

from batchrank.backends.transport import Gate
from batchrank.distributed.relay import Hello, Relay, Source, Taken, Wanted
from batchrank.distributed.transport import NodeTransport
from batchrank.errors import (
    BatchrankError,
    LostServerError,
    NoServerError,
    UnavailableError,
    UsageError,
)

T = TypeVar("T")
Place = tuple[str, int]
"""A node by its number, and which of the servers there, from 1."""
_LOST = (ConnectionError, ValueError)
"""What Ray's client raises, beside errors of Ray, when its connection is gone for good."""
_INSTALL = "pip install 'batchrank[ray]'"
_LOOK_SECONDS = 1.0
"""Between two looks at who is in the cluster."""
_KNOCK_SECONDS = 10.0
_PATIENCE_SECONDS = 60.0
"""At the start the slower nodes are waited for so long, where others are there."""
_END_SECONDS = 5.0
"""What a worker that was killed may take until Ray says so."""
_CLIENT_TRIES = 3
"""What serves Ray's client starts a process for each driver by a fork that gRPC breaks at times."""
_CONCURRENCY = 10_000
"""Calls that a worker may hold; Ray's own limit is 1,000."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What is wanted of the cluster at `address`: on each node so many servers of `source`.

    Each is reached through `workers` of its own, which take `num_gpus` each of the node and may
    take `start_seconds` until theirs answers.
    """

    address: str
    source: Source
    servers: int = 1
    workers: int = 1
    num_gpus: float = 0.0
    start_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Change:
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
    ray = await asyncio.to_thread(_load)
    await _knock(wish.address)
    tries = _CLIENT_TRIES if wish.address.startswith("ray://") else 1
    await asyncio.to_thread(_join, ray, wish.address, tries)
    cluster = Cluster(ray, wish, gate)
    try:
        yield cluster
    finally:
        await cluster.close()
        await asyncio.to_thread(ray.shutdown)


def _load() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # It would look for another cluster, or start one, where the connection to this one is lost.
    os.environ["RAY_ENABLE_AUTO_CONNECT"] = "0"
    # What its C++ part would write on standard error past all that Python can do.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    try:
        import ray  # noqa: PLC0415 - seconds, and an extra
    except ImportError as error:
        raise UsageError(f"engine ray needs Ray: {_INSTALL}") from error
    return ray


def _hush() -> None:
    """Let Ray write nothing: not about dead nodes on standard output either, where data may go.

    Its client logs whatever level was asked for. There is no option for either; where Ray calls
    them otherwise one day, tests say so.
    """
    logging.getLogger("ray").handlers = [logging.NullHandler()]
    worker: Any = import_module("ray._private.worker")
    worker.print_to_stdstream = lambda *_, **__: None


async def _knock(address: str) -> None:
    """See that somebody listens at an address: Ray itself would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not (colon and port.isdecimal()):
        return  # `auto`, and whatever else Ray may know
    try:
        async with asyncio.timeout(_KNOCK_SECONDS):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except (OSError, OverflowError, TimeoutError) as error:
        raise _nobody(address, str(error) or "it does not answer") from error
    writer.close()


def _nobody(address: str, why: str) -> NoServerError:
    return NoServerError(
        f"no Ray cluster can be joined at {address}: {why}; start one with `ray start --head`, or "
        "name another with --ray-address"
    )


def _join(ray: Any, address: str, tries: int) -> None:
    try:
        # In a thread, where Ray leaves the handlers of signals alone.
        ray.init(
            address=address,
            log_to_driver=False,
            logging_level="critical",
            namespace="batchrank",
        )
    except ImportError as error:
        raise UsageError(f"{address} needs Ray's client: {_INSTALL}") from error
    except (ConnectionError, RuntimeError, ValueError) as error:
        if tries > 1:
            return _join(ray, address, tries - 1)
        raise _nobody(address, _said(error)) from error
    return _hush()


class Cluster:
    """Looks at the nodes again and again; `changes` says what is new since the last look."""

    def __init__(self, ray: Any, wish: Wish, gate: Gate) -> None:
        self._ray = ray
        self._wish = wish
        self._gate = gate
        self._nodes: dict[Place, NodeTransport] = {}
        self._meetings: dict[Place, asyncio.Task[NodeTransport | str]] = {}
        self._useless: set[Place] = set()

    async def present(self) -> Change:
        """The nodes that are there now: all, or those that are ready when the others take long."""
        await self._look()
        slow = set(self._meetings.values())
        if slow:
            ready, slow = await asyncio.wait(slow, timeout=_PATIENCE_SECONDS)
            while slow and all(isinstance(one.result(), str) for one in ready):
                ready, slow = await asyncio.wait(slow, return_when=asyncio.FIRST_COMPLETED)
        return await self._look()

    async def changes(self) -> AsyncIterator[Change]:
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

    async def _look(self) -> Change:
        """What is new since the last look; nodes that are new are met meanwhile."""
        alive = self._places(await asyncio.to_thread(self._alive))
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
        return Change(tuple(came), tuple(left), tuple(faults))

    def _alive(self) -> dict[str, str]:
        """The nodes by their number, and a name for each."""
        if not self._ray.is_initialized():
            raise LostServerError("the connection to the Ray cluster is lost")
        try:
            nodes = self._ray.nodes()
        except (self._ray.exceptions.RayError, *_LOST) as error:
            raise LostServerError(
                f"the connection to the Ray cluster is lost: {_said(error)}"
            ) from error
        return {
            node["NodeID"]: f"{node['NodeManagerAddress']} ({node['NodeID'][:6]})"
            for node in nodes
            if node["Alive"]
        }

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
        workers = [_RayWorker(self._ray, self._make(node)) for _ in range(wish.workers)]
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

    def _make(self, node: str) -> Any:
        scheduling = self._ray.util.scheduling_strategies
        pinned = scheduling.NodeAffinitySchedulingStrategy(node_id=node, soft=False)
        return (
            self._ray.remote(Relay)
            .options(
                num_cpus=0,
                num_gpus=self._wish.num_gpus,
                max_restarts=-1,
                max_concurrency=_CONCURRENCY,
                scheduling_strategy=pinned,
            )
            .remote(self._wish.source)
        )


class _RayWorker:
    """See `Worker`."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray = ray
        self._actor = actor
        self._expected: set[asyncio.Future[Any]] = set()

    async def hello(self) -> Hello:
        with self._naming_losses():
            return await self._told(self._actor.hello.remote())

    async def put(self, wanted: Sequence[Wanted]) -> None:
        with self._naming_losses():
            self._actor.put.remote(wanted)  # nobody waits: if it is lost `take` says so

    async def take(self, process: int) -> Taken:
        with self._naming_losses():
            return await self._told(self._actor.take.remote(process))

    async def close(self) -> None:
        with suppress(UnavailableError), self._naming_losses():
            await asyncio.to_thread(self._ray.kill, self._actor)
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

    @contextmanager
    def _naming_losses(self) -> Iterator[None]:
        if not self._ray.is_initialized():  # it would raise any Exception
            raise UnavailableError("the connection to the Ray cluster is lost", unreached=True)
        errors = self._ray.exceptions
        try:
            yield
        except errors.RayTaskError as error:
            raise error.cause from error
        except errors.ActorUnschedulableError as error:
            raise UnavailableError(
                "the node is gone, or has fewer GPUs than num_gpus asks for", unreached=True
            ) from error
        except (errors.RayError, *_LOST) as error:
            raise UnavailableError(f"its worker is lost: {_said(error)}", unreached=True) from error


def _said(error: Exception) -> str:
    """The last line of what an error of Ray says: the cause, below a trace of where it happened."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return " ".join(lines[-1].split())[:200].rstrip(".")
