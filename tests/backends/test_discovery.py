"""Servers on this machine are found in the order of preference, and nothing else is."""

from __future__ import annotations

import asyncio
import socket

import pytest

from batchrank.backends.discovery import PLACES, Found, Place, discover
from batchrank.errors import NoServerError
from tests.backends.servers import raw, read_request, scripted

MODELS = {"/v1/models": {"data": [{"id": "m"}]}}


def ollama(port: int) -> Place:
    return Place("Ollama", port, backend="ollama", path="/api/version", key="version")


async def test_the_order_of_places_is_kept() -> None:
    async with (
        scripted(MODELS) as vllm,
        scripted({"/api/version": {"version": "0.13"}}) as native,
        scripted({"/v1/models": {"error": "no"}}) as other,
        scripted({}) as site,
    ):
        places = (
            ollama(native.port),
            Place("other", other.port),
            Place("site", site.port),
            Place("vLLM", vllm.port),
        )
        assert await discover(places, seconds=10) == (
            Found("Ollama", "ollama", native.url),
            Found("vLLM", "openai", vllm.url),
        )
        assert [found.name for found in await discover(places[::-1], seconds=10)] == [
            "vLLM",
            "Ollama",
        ]


async def test_a_port_that_hangs_is_left_behind() -> None:
    async def hang(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        await asyncio.Event().wait()

    async with raw(hang) as url:
        with pytest.raises(NoServerError):
            await discover([Place("stuck", int(url.rpartition(":")[2]))], seconds=0.05)


async def test_none_found_names_the_ways_to_go_on() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(NoServerError) as caught:
            await discover([ollama(port), Place("vLLM", port)])
    message = str(caught.value)
    for way in ("ollama serve", "--base-url", "--backend embedded --model-path FILE.gguf"):
        assert way in message
    assert caught.value.exit_code == 4


def test_the_default_places() -> None:
    assert [place.port for place in PLACES] == [11434, 8000, 8080, 9931, 1234]
    assert [place.backend for place in PLACES] == ["ollama", *["openai"] * 4]
