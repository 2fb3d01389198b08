"""What every backend offers, and what it is made from."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from batchrank.backends.http import Http
from batchrank.backends.transport import Gate, Transport, at_once
from batchrank.calls import Answer, Prompt, ServerInfo
from batchrank.errors import FatalServerError


@dataclass(frozen=True, slots=True)
class Call:
    """One request as it is sent: the same prompt gives the same path and bytes.

    `read` turns the bytes that come back into an answer, whose `seconds` are 0; it raises
    ServerError where they are none. Where there is a `target`, the server is asked for its tokens
    first, and `spelled` makes the body that is really sent of them; of None where they can't be
    named one by one. Where there are `parts`, they are sent in place of a body that the server
    would not take.
    """

    path: str
    body: bytes
    read: Callable[[bytes], Answer] = field(compare=False)
    target: str | None = None
    spelled: Callable[[Sequence[int] | None], bytes] | None = field(default=None, compare=False)
    parts: tuple[Call, ...] = field(default=(), compare=False)


class Backend(Protocol):
    """One model on one server. `describe` comes first: what it learns shapes every request."""

    url: str
    in_background: bool
    """Whether requests say that other users of the server go first."""

    @property
    def reconnects(self) -> int:
        """Counts connections made in the place of lost ones: behind each may be another server."""

    async def crowd(self, own: int) -> int | None:
        """How many requests wait at the server, or are worked on beside our `own`.

        None where it does not tell. Raises ServerError.
        """

    async def describe(self) -> ServerInfo:
        """Ask the server what it is and which model it serves.

        Raises:
            FatalServerError: the model named is not there, none is named and several are, bad key.
            UnavailableError: the server can't be reached, or is still loading.
            ServerError: any other failure.
        """

    def encode(self, prompt: Prompt) -> Call:
        """The exact request for `prompt`.

        Raises:
            ValueError: the server has no such form; `describe` says which it has.
        """

    async def send(self, call: Call, seconds: float) -> Answer:
        """Send an encoded request once; its answer. It may take `seconds`.

        Raises:
            ServerError: no answer came; the class says what to do about it.
        """

    async def close(self) -> None:
        """Close all connections."""


@dataclass(frozen=True, slots=True)
class BackendOptions:
    """Where the model is and how it is asked. `model` None is the only one served."""

    base_url: str
    model: str | None = None
    api_key: str | None = field(default=None, repr=False)
    thinking: bool = False
    seed: int = 0
    insecure: bool = False
    """Allow a key to travel over plain http to another machine."""
    background: bool = False
    """Let other users of the server go first, where it knows priorities."""
    rerank: bool = False
    """The server is asked for relevances, so find its route for them."""
    gate: Gate = at_once
    transport: Transport | None = None
    """What carries requests; None for HTTP from here to `base_url`."""

    def connect(self, root: str) -> Transport:
        """What carries requests to the server at `root`; raises UsageError as `Http`."""
        return self.transport or Http(
            root, api_key=self.api_key, insecure=self.insecure, gate=self.gate
        )


MOST_CHARACTERS = 64 * 1024
"""Kept of an answer and of its reasoning: thousands of times what is asked for."""
DROPPED = "\n… the rest was dropped"


async def ask(http: Transport, call: Call, seconds: float) -> Answer:
    """Send one request and read its answer; raises as `Backend.send`."""
    start = time.perf_counter()
    answer = call.read(await http.post(call.path, call.body, seconds))
    seconds = time.perf_counter() - start
    text, reasoning = _cut(answer.text), _cut(answer.reasoning)
    return replace(answer, text=text, reasoning=reasoning, seconds=seconds)


def _cut(text: str) -> str:
    """The first `MOST_CHARACTERS` of a text: a model that never ends must not fill the store."""
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}{DROPPED}"


def choose_model(named: str | None, served: Sequence[str]) -> str:
    """The model to use of those served, by the server's own name.

    Raises:
        FatalServerError: the one named is not there, or none is named and there is not just one.
    """
    listed = ", ".join(served) or "none"
    if named is None:
        if len(served) == 1:
            return served[0]
        raise FatalServerError(f"Name one of the server's models with --model; it has: {listed}.")
    for name in (named, f"{named}:latest"):  # Ollama's tag for a name without one
        if name in served:
            return name
    raise FatalServerError(f"The server does not have the model {named!r}; it has: {listed}.")


def identify(kind: str, **facts: object) -> str:
    """A stable text of what tells one set of weights from another; unknown facts are left out."""
    known = (f"{name}={fact}" for name, fact in sorted(facts.items()) if fact not in (None, ""))
    return " ".join((kind, *known))
