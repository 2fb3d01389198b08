"""A real small model, and llama.cpp serving it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from batchrank.backends.embedded.runtimes import Load
from batchrank.backends.embedded.server import EmbeddedServer
from tests.cli.running import serving
from tests.conftest import ROOT, missing


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """SmolLM2-135M-Instruct: too small to rank well, and so a source of real malformed answers."""
    path = ROOT / ".cache" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if not path.is_file():
        missing("the model SmolLM2-135M-Instruct", "make model")
    return path


@asynccontextmanager
async def _llama(model: Path) -> AsyncIterator[str]:
    async with EmbeddedServer() as server:
        # One thread: where several wait for one another on a busy machine they take minutes.
        yield await server.start(model, Load(2048, slots=2, threads=1))


@pytest.fixture(scope="package")
def llama_server(smollm2: Path) -> Iterator[str]:
    """The base URL of a real llama.cpp server with two slots of 2,048 tokens."""
    with serving(_llama(smollm2)) as url:
        yield url
