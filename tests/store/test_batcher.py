"""Which items share a batch, and that nobody is kept waiting who is not patient."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from batchrank.store import batcher
from batchrank.store.batcher import Batcher


class Batches:
    """Takes batches of texts, and gives them back in capitals."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, ...]] = []
        self.batcher: Batcher[str, str] = Batcher(self._handle)

    async def _handle(self, items: Sequence[str]) -> list[str]:
        await asyncio.sleep(0)
        self.seen.append(tuple(items))
        return [item.upper() for item in items]

    def submit(self, item: str, *, patient: bool = False) -> asyncio.Task[str]:
        return asyncio.ensure_future(self.batcher.submit(item, patient=patient))


async def _some_turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_what_came_while_one_batch_was_handled_is_the_next() -> None:
    batches = Batches()
    tasks = [batches.submit("a")]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    tasks += [batches.submit("b"), batches.submit("c")]
    assert await asyncio.gather(*tasks) == ["A", "B", "C"]
    assert batches.seen == [("a",), ("b", "c")]


async def test_the_patient_wait_for_each_other_and_for_nobody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batcher, "PATIENCE_SECONDS", 3600.0)
    batches = Batches()
    assert await batches.submit("first", patient=True) == "FIRST"
    waiting = [batches.submit("b", patient=True), batches.submit("c", patient=True)]
    await _some_turns()
    assert batches.seen == [("first",)]
    assert await batches.submit("urgent") == "URGENT"
    assert await asyncio.gather(*waiting) == ["B", "C"]
    assert batches.seen == [("first",), ("b", "c", "urgent")]


async def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batcher, "PATIENCE_SECONDS", 0.001)
    batches = Batches()
    for item in "abc":
        assert await batches.submit(item, patient=True) == item.upper()
    assert batches.seen == [("a",), ("b",), ("c",)]


async def test_to_drain_needs_no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batcher, "PATIENCE_SECONDS", 3600.0)
    batches = Batches()
    await batches.submit("first", patient=True)
    late = batches.submit("late", patient=True)
    await _some_turns()
    await batches.batcher.drain()
    assert await late == "LATE"
