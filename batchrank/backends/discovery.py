"""Looks for model servers on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from batchrank.backends.http import Http
from batchrank.errors import NoServerError, ServerError

PROBE_SECONDS = 2.0
"""How long a port may take to answer: a server on this machine is there at once or not at all."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server may be: it is one if the object at `path` holds `key`."""

    name: str
    port: int
    backend: str = "openai"
    path: str = "/v1/models"
    key: str = "data"


@dataclass(frozen=True, slots=True)
class Found:
    """A server that answered: the backend (`ollama` or `openai`) that talks to it at `url`."""

    name: str
    backend: str
    url: str


PLACES = (
    Place("Ollama", 11434, backend="ollama", path="/api/version", key="version"),
    Place("vLLM", 8000),
    Place("llama.cpp", 8080),
    Place("llama.cpp", 9931),
    Place("LM Studio", 1234),
)
"""The ports that servers listen on by default, the preferred first."""


async def discover(
    places: Sequence[Place] = PLACES, *, seconds: float = PROBE_SECONDS
) -> tuple[Found, ...]:
    """The model servers on this machine, in the order of `places`, at least one.

    Raises:
        NoServerError: there is none; says what to do.
    """
    answers = await asyncio.gather(*(_look(place, seconds) for place in places))
    found = tuple(answer for answer in answers if answer is not None)
    if not found:
        ports = ", ".join(str(place.port) for place in places)
        raise NoServerError(
            f"No model server answers on this machine (ports {ports}). Either start one, for "
            "example with `ollama serve`; or say where one is with --base-url URL; or run a model "
            "in this process with --backend embedded --model-path FILE.gguf."
        )
    return found


async def _look(place: Place, seconds: float) -> Found | None:
    http = Http(f"http://127.0.0.1:{place.port}")
    try:
        answer = await http.get(place.path, seconds)
    except ServerError:
        return None
    finally:
        await http.close()
    return Found(place.name, place.backend, http.url) if place.key in answer else None
