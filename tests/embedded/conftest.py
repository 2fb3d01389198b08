"""A real small model, and llama.cpp serving it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from batchrank.backends.embedded.runtimes import Load
from batchrank.backends.embedded.server import EmbeddedServer
from tests.conftest import ROOT, missing


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """SmolLM2-135M-Instruct: too small to rank well, and so a source of real malformed answers."""
    path = ROOT / ".cache" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if not path.is_file():
        missing("the model SmolLM2-135M-Instruct", "make model")
    return path


@pytest.fixture
async def llama_server(smollm2: Path) -> AsyncIterator[str]:
    """The base URL of a real llama.cpp server with two slots of 2,048 tokens."""
    async with EmbeddedServer() as server:
        yield await server.start(smollm2, Load(2048, slots=2))
