"""Carries requests to the server of a node by way of its workers, in messages of many."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count
from typing import Protocol

from batchrank.backends.transport import Gate, Transport
from batchrank.distributed.relay import ENOUGH, Hello, Taken, Wanted
from batchrank.errors import BatchrankError, UnavailableError
from batchrank.version import __version__

_GATHERING_SECONDS = 0.002
"""What is sent together becomes ready together: when a message of replies has freed slots."""
_LOST_SECONDS = 30.0
"""Beyond the time of a call: then its reply is lost, whatever Ray says."""
_PAUSE_SECONDS = 0.5
"""Between two tries to reach a worker that was lost."""
_REFUSED_SECONDS = 30.0
"""The same where it is there and has no server: to load a model takes its time, and the node's."""


class Worker(Protocol):
    """A `Relay` on another machine; every method raises UnavailableError where it is lost."""

    async def hello(self) -> Hello:
        """See `Relay.hello`."""

    async def put(self, wanted: Sequence[Wanted]) -> None:
        """See `Relay.put`; it may be that nothing arrives, and nobody says so."""

    async def take(self, process: int) -> Taken:
        """See `Relay.take`."""

    async def close(self) -> None:
        """End it, with all it holds."""


class NodeTransport(Transport):
    """A `Transport` to the server of one node, through one or several workers there.

    What a worker holds when it is lost raises UnavailableError, so that it is asked for elsewhere;
    once the worker is back it is used again.
    """

    def __init__(self, name: str, workers: Sequence[Worker], gate: Gate) -> None:
        self.url = name
        self._name = name
        self._gate = gate
        self._lines = [_Line(worker) for worker in workers]

    @property
    def reconnects(self) -> int:
        """See `Transport.reconnects`."""
        return sum(line.reconnects for line in self._lines)

    @property
    def weights(self) -> str | None:
        """See `Transport.weights`."""
        return self._lines[0].weights

    async def start(self) -> None:
        """Reach the workers. Raises UnavailableError, UsageError, and what making them raised."""
        hellos = await asyncio.gather(*(line.start() for line in self._lines))
        self.url = f"{hellos[0].url} on {self._name}"

    async def close(self) -> None:
        """See `Transport.close`."""
        await asyncio.gather(*(line.close() for line in self._lines))

    async def exchange(self, method: str, path: str, body: bytes | None, seconds: float) -> bytes:
        """See `Transport.exchange`."""
        await self._gate()
        line = min(self._lines, key=_Line.load)
        return await line.ask(method, path, body, seconds)


class _Line:
    """The requests that one worker holds."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._numbers = count()
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._outbox: list[Wanted] = []
        self._sending: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._lost: str | None = None
        self._process = 0
        self._reconnects = self._earlier = 0
        self.weights: str | None = None

    @property
    def reconnects(self) -> int:
        return self._earlier + self._reconnects

    def load(self) -> tuple[bool, int]:
        """Workers that are lost come last, then those that hold most."""
        return self._lost is not None, len(self._waiting)

    async def start(self) -> Hello:
        hello = await self._worker.hello()
        if hello.version != __version__:
            raise UnavailableError(
                f"it has batchrank {hello.version} and this machine {__version__}: install the "
                "same on all nodes",
                unreached=True,
            )
        self._process = hello.process
        self._listening = asyncio.create_task(self._listen())
        return hello

    async def ask(self, method: str, path: str, body: bytes | None, seconds: float) -> bytes:
        if self._lost is not None:
            raise UnavailableError(self._lost, unreached=True)
        number = next(self._numbers)
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[number] = reply
        self._outbox.append(Wanted(number, method, path, body, seconds))
        if self._sending is None:
            self._sending = asyncio.create_task(self._send())
        try:
            async with asyncio.timeout(seconds + _LOST_SECONDS):
                return await reply
        except TimeoutError:
            raise UnavailableError(
                f"no reply came within {seconds + _LOST_SECONDS:g} s", timed_out=True
            ) from None
        finally:
            self._waiting.pop(number, None)

    async def close(self) -> None:
        for task in (self._sending, self._listening):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        await self._worker.close()

    async def _send(self) -> None:
        await asyncio.sleep(_GATHERING_SECONDS)
        while self._outbox:
            message, self._outbox = self._outbox[:ENOUGH], self._outbox[ENOUGH:]
            try:
                await self._worker.put(message)
            except UnavailableError as error:
                self._lose(error)
        self._sending = None

    async def _listen(self) -> None:
        while True:
            try:
                taken = await self._worker.take(self._process)
                if taken.process != self._process:
                    raise UnavailableError("its worker was started anew")
            except UnavailableError as error:
                self._lose(error)
                await self._find_again()
                continue
            self._reconnects, self.weights = taken.reconnects, taken.weights
            for number, body, fault in taken.replies:
                reply = self._waiting.get(number)
                if reply is None or reply.done():
                    continue  # nobody waits for it any more
                if fault is not None:
                    reply.set_exception(fault)
                else:
                    assert body is not None
                    reply.set_result(body)

    async def _find_again(self) -> None:
        """Wait until the worker is back, perhaps as another process in front of another server."""
        pause = _PAUSE_SECONDS
        while True:
            await asyncio.sleep(pause)
            try:
                hello = await self._worker.hello()
            except UnavailableError as error:
                self._lost, pause = str(error), _PAUSE_SECONDS
                continue
            except BatchrankError as error:
                self._lost, pause = str(error), _REFUSED_SECONDS
                continue
            if hello.process != self._process:
                self._process = hello.process
                self._earlier += self._reconnects + 1
                self._reconnects = 0
            self._lost = None
            return

    def _lose(self, error: UnavailableError) -> None:
        self._lost = str(error)
        self._outbox.clear()
        for reply in self._waiting.values():
            if not reply.done():
                reply.set_exception(UnavailableError(self._lost, unreached=True))
