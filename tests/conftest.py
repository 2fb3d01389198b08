"""What all tests share: where the shared data lies, what may be missing, no blocking calls."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from hypothesis import settings

# How long an example takes says something about the machine, nothing about the code.
settings.register_profile("batchrank", deadline=None)
settings.load_profile("batchrank")

ROOT = Path(__file__).parent.parent


def missing(what: str, remedy: str) -> NoReturn:
    """Skip, with the reason, a test whose means are not there; fail where all are required."""
    reason = f"{what} is missing: {remedy}"
    if os.environ.get("REQUIRE_ALL") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def data_folder() -> Path | None:
    """Where recorded answers and judged queries are that the project may not contain."""
    folder = Path(os.environ.get("BATCHRANK_DATA", ROOT.parent / "shared" / "data"))
    return folder if (folder / "cases.jsonl").is_file() else None


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """See `data_folder`; without it the test is skipped."""
    folder = data_folder()
    if folder is None:
        missing("the shared data", "set BATCHRANK_DATA to its folder")
    return folder


@pytest.fixture(autouse=True)
def blockbuster() -> Iterator[BlockBuster]:
    """Fail on a blocking call made by batchrank while the event loop runs."""
    with blockbuster_ctx(scanned_modules=["batchrank"]) as blocker:
        # A loop that is closed waits for its threads, and nobody is left who would be held up.
        blocker.functions["threading.Lock.acquire"].can_block_in("asyncio/runners.py", "close")
        yield blocker
