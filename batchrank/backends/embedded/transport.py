"""Keeps the server of an embedded model running, and carries requests to it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from batchrank.backends.embedded.identity import identity_of
from batchrank.backends.embedded.runtimes import Load
from batchrank.backends.embedded.server import EmbeddedServer
from batchrank.backends.http import Http
from batchrank.backends.transport import Gate, Transport, at_once
from batchrank.backends.weights import (
    GEMMA,
    announcement,
    fetch,
    folder_of_models,
    is_there,
    sweep,
)
from batchrank.errors import BatchrankError, FatalServerError, OverloadedError, UnavailableError

_log = logging.getLogger(__name__)

PAUSES = (1.0, 5.0, 30.0)
"""Seconds before a model that ended is loaded again: memory is given back late, and what asks in
the meantime hears why. More often than that it is not tried without an answer in between."""
HUNG_SECONDS = 10.0
"""A call that had less, as what is left of another limit may be, can't tell that a model hangs."""
_DYING_SECONDS = 1.0
"""By how much a process may outlive its connections."""


def _in_silence(_said: str) -> None:
    """Where nobody would hear it."""


@dataclass(frozen=True, slots=True)
class EmbeddedModel:
    """A model and how it is loaded, on whichever machine; without a path Gemma 3 270M."""

    path: Path | None
    load: Load

    @property
    def announcement(self) -> str:
        """What is done first, as a user should know before it is."""
        if self.path is None:
            return f"loading {GEMMA.name}, where it is not there {announcement(GEMMA)}"
        return f"loading {self.path.name}"

    async def open(
        self, say: Callable[[str], None] = _in_silence, gate: Gate = at_once
    ) -> EmbeddedTransport:
        """Fetch it where that is needed, and load it here; raises as `EmbeddedServer.start`."""
        path = self.path or await _built_in_model(say)
        say(f"loading {path.name} into this machine's memory")
        transport = EmbeddedTransport(path, self.load, gate)
        await transport.start()
        return transport


async def _built_in_model(say: Callable[[str], None]) -> Path:
    """The file of the model that comes with the embedded backend, fetched if it is not there."""
    path = folder_of_models() / GEMMA.name
    await asyncio.to_thread(sweep, path)
    if not await asyncio.to_thread(is_there, GEMMA, path):
        say(announcement(GEMMA))
        await asyncio.to_thread(fetch, GEMMA, path)
    return path


class EmbeddedTransport(Transport):
    """A `Transport` to a model that is loaded here, and loaded again where its process ends.

    One that hangs is ended: it answered no request at all in the time that one of them had.
    Meanwhile it says what a server says that is loading its model. Where it ends again and again
    without an answer in between it is given up: then every call raises FatalServerError.
    """

    def __init__(self, model_path: Path, load: Load, gate: Gate = at_once) -> None:
        self.url = ""
        self._model_path = model_path
        self._load = load
        self._gate = gate
        self._server = EmbeddedServer()
        self._http: Http | None = None
        self._identity: str | None = None
        self._earlier = 0
        self._down = asyncio.Event()
        self._said = ""
        self._ends = 0
        """How often it ended since it last answered."""
        self._answers = 0
        self._keeping: asyncio.Task[None] | None = None

    @property
    def weights(self) -> str | None:
        """See `Transport.weights`."""
        return self._identity

    @property
    def reconnects(self) -> int:
        """See `Transport.reconnects`."""
        return self._earlier + (self._http.reconnects if self._http else 0)

    async def start(self) -> None:
        """Load the model; raises as `EmbeddedServer.start`."""
        await self._begin()
        self._keeping = asyncio.create_task(self._keep())

    async def exchange(self, method: str, path: str, body: bytes | None, seconds: float) -> bytes:
        """See `Transport.exchange`."""
        await self._gate()
        if self._down.is_set():
            raise self._absence()
        assert self._http is not None
        http, answers = self._http, self._answers
        try:
            answer = await http.exchange(method, path, body, seconds)
        except UnavailableError as error:
            if isinstance(error, OverloadedError):
                raise
            if error.timed_out:
                # GETs may be answered while POSTs hang, and be late while POSTs are worked on.
                if method != "POST" or seconds < HUNG_SECONDS:
                    raise
                if http is not self._http or answers != self._answers:
                    raise
                if not self._down.is_set():
                    self._server.end(f"it hung, and gave no answer within {seconds:.3g} s")
            if not await self._dies():
                raise
            late, unreached = error.timed_out, error.unreached
            raise UnavailableError(self._said, timed_out=late, unreached=unreached) from error
        if method == "POST":
            self._ends = 0
            self._answers += 1
        return answer

    async def close(self) -> None:
        """End the server, whatever it is doing, and close all connections."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait([self._keeping])
        await self._server.stop()
        if self._http is not None:
            await self._http.close()

    async def _begin(self) -> None:
        # Hashed each time: the file may be another by now, which ends the job.
        self._identity = await identity_of(self._model_path)
        http = Http(await self._server.start(self._model_path, self._load))
        if self._http is None:
            self.url = http.url
        else:
            self._earlier += self._http.reconnects + 1
            await self._http.close()
        self._http = http
        self._down.clear()

    async def _keep(self) -> None:
        while True:
            self._lose(await self._server.ended())
            while self._down.is_set():
                await self._server.stop()
                if self._is_given_up:
                    return
                await asyncio.sleep(PAUSES[self._ends - 1])
                try:
                    await self._begin()
                except BatchrankError as error:
                    self._lose(str(error))

    def _lose(self, said: str) -> None:
        _log.warning("%s", said, extra={"endpoint": self.url})
        self._ends += 1
        self._said = f"{said.rstrip('.')}; " + (
            f"it was loaded again {len(PAUSES)} times without answering once"
            if self._is_given_up
            else "it is loaded again"
        )
        self._down.set()

    @property
    def _is_given_up(self) -> bool:
        return self._ends > len(PAUSES)

    def _absence(self) -> UnavailableError | FatalServerError:
        if self._is_given_up:
            return FatalServerError(self._said)
        return UnavailableError(self._said, loading=True)

    async def _dies(self) -> bool:
        """Whether a failed connection came of the end of the process, which may be seen later."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._down.wait(), _DYING_SECONDS)
        return self._down.is_set()
