"""An open store in a file of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from batchrank.store.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store is, or will be."""
    return tmp_path / "jobs.sqlite"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[Store]:
    """An open store, closed after the test."""
    opened = await Store.open(path, create=True)
    yield opened
    await opened.close()
