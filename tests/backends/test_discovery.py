"""Servers on this machine are found in the order of preference, and nothing else is."""

from __future__ import annotations

import asyncio
import socket

import pytest

from batchrank.backends.discovery import PLACES, Found, Place, discover
from batchrank.errors import NoServerError
from tests.backends.servers import raw, read_request, scripted

MODELS = {"/v1/models": {"data": [{"id": "m"}]}}


def at(port: int) -> str:
    return f"http://127.0.0.1:{port}"


async def test_the_order_of_places_is_kept() -> None:
    async with (
        scripted(MODELS) as vllm,
        scripted({"/api/tags": {"models": [{"name": "a"}, {"name": "b"}, 3]}}) as native,
        scripted({"/v1/models": {"error": "no"}}) as other,
        scripted({}) as site,
    ):
        places = (
            Place("Ollama", native.url, "ollama"),
            Place("other", other.url),
            Place("site", site.url),
            Place("vLLM", vllm.url),
        )
        assert await discover(places, seconds=10) == (
            Found("Ollama", "ollama", native.url, ("a", "b")),
            Found("vLLM", "openai", vllm.url, ("m",)),
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
            await discover([Place("stuck", url)], seconds=0.05)


async def test_none_found_names_the_ways_to_go_on() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(NoServerError) as caught:
            await discover([Place("Ollama", at(port), "ollama"), Place("vLLM", at(port))])
    message = str(caught.value)
    for way in ("ollama serve", "--base-url", "--backend embedded --model-path FILE.gguf"):
        assert way in message
    assert caught.value.exit_code == 4


def test_the_default_places() -> None:
    assert [place.url for place in PLACES] == [at(port) for port in (11434, 8000, 8080, 9931, 1234)]
    assert [place.backend for place in PLACES] == ["ollama", *["openai"] * 4]
