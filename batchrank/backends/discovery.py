"""Looks for model servers on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from batchrank.backends.http import Http
from batchrank.errors import NoServerError, ServerError

PROBE_SECONDS = 2.0
"""How long a port may take to answer: a server on this machine is there at once or not at all."""


_LISTS = {"ollama": ("/api/tags", "models", "name"), "openai": ("/v1/models", "data", "id")}
"""Where a backend's server lists its models: path, key of the list, key of a name."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server may be: it is one if it lists its models as a `backend`'s server does."""

    name: str
    url: str
    backend: str = "openai"


@dataclass(frozen=True, slots=True)
class Found:
    """A server that answered: the backend (`ollama` or `openai`) that talks to it at `url`.

    `models` are the names it lists.
    """

    name: str
    backend: str
    url: str
    models: tuple[str, ...] = ()


def _here(name: str, port: int, backend: str = "openai") -> Place:
    return Place(name, f"http://127.0.0.1:{port}", backend)


PLACES = (
    _here("Ollama", 11434, "ollama"),
    _here("vLLM", 8000),
    _here("llama.cpp", 8080),
    _here("llama.cpp", 9931),
    _here("LM Studio", 1234),
)
"""The ports that servers listen on by default, the preferred first."""


async def discover(
    places: Sequence[Place] = PLACES, *, seconds: float = PROBE_SECONDS
) -> tuple[Found, ...]:
    """The model servers on this machine, in the order of `places`, at least one.

    Raises:
        NoServerError: there is none; says what to do.
    """
    found = await look(places, seconds=seconds)
    if not found:
        ports = ", ".join(place.url.rpartition(":")[2] for place in places)
        raise NoServerError(
            f"No model server answers on this machine (ports {ports}). Either start one, for "
            "example with `ollama serve`; or say where one is with --base-url URL; or run a model "
            "in this process with --backend embedded --model-path FILE.gguf."
        )
    return found


async def look(
    places: Sequence[Place] = PLACES, *, seconds: float = PROBE_SECONDS
) -> tuple[Found, ...]:
    """The model servers at `places`, in their order; none where none answers."""
    answers = await asyncio.gather(*(_look(place, seconds) for place in places))
    return tuple(answer for answer in answers if answer is not None)


async def _look(place: Place, seconds: float) -> Found | None:
    path, key, name = _LISTS[place.backend]
    http = Http(place.url)
    try:
        answer = await http.get(path, seconds)
    except ServerError:
        return None
    finally:
        await http.close()
    if key not in answer:
        return None
    listed = answer[key]
    rows = listed if isinstance(listed, list) else []
    names = [row.get(name) for row in rows if isinstance(row, dict)]
    models = tuple(one for one in names if isinstance(one, str))
    return Found(place.name, place.backend, http.url, models)
