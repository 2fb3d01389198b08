"""Gates: when a result may replace yesterday's, and when going on is of no use."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from batchrank.running.gates import is_hopeless, rejections
from batchrank.spec.jobspec import JobSpec
from batchrank.store.records import Totals
from batchrank.store.store import Store
from batchrank.values import QueryStatus, Tally


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """A store with one run without lines: what is judged here are its totals alone."""
    opened = await Store.open(tmp_path / "s.sqlite", create=True)
    await opened.begin_run(b"job", JobSpec().ranking_settings(), "in", "out", fresh=False)
    yield opened
    await opened.close()


async def reasons(
    store: Store, totals: Totals, max_fallback: float = 0.05, max_failed: float = 0.01
) -> list[str]:
    """Why a run with these totals is rejected."""
    spec = JobSpec(max_fallback=max_fallback, max_failed=max_failed)
    return [r.reason for r in await rejections(store, await store.run(), spec, totals, None)]


def totals(failed: int = 0, queries: int = 100, **windows: int) -> Totals:
    """A run with so many queries, of which some failed, and windows by how they ended."""
    found = {QueryStatus.OK: queries - failed, QueryStatus.FAILED: failed}
    return Totals({status: n for status, n in found.items() if n}, Tally(**windows))


@pytest.mark.parametrize(
    ("run", "accepted"),
    [
        (totals(ok=100), True),
        (totals(ok=95, fallback=5), True),
        (totals(ok=94, fallback=6), False),
        (totals(ok=97, error=3), True),
        (totals(ok=94, error=3, fallback=3), False),
        (totals(ok=95, repaired=5), True),
        (totals(ok=100, unmoved=100), True),
        (totals(ok=100, thin=5), True),
        (totals(ok=100, thin=6), False),
        (totals(ok=97, fallback=3, thin=3), False),
        (totals(failed=1, ok=100), True),
        (totals(failed=2, ok=100), False),
        (totals(queries=0), True),
        (totals(queries=1, failed=1), False),
    ],
)
async def test_the_default_gates(store: Store, run: Totals, accepted: bool) -> None:
    assert (await reasons(store, run) == []) is accepted


async def test_each_gate_says_its_numbers_and_its_flag(store: Store) -> None:
    run = totals(failed=3, ok=80, fallback=10, error=6, thin=4, repaired=4)

    windows, queries = await reasons(store, run)

    assert windows.startswith("20 of 100 windows (20.0%) brought no usable ranking")
    assert "10 unusable, 6 unanswered, 4 naming" in windows
    assert "--max-fallback allows 5.0%" in windows
    assert queries == "3 of 100 queries (3.0%) failed; --max-failed allows 1.0%"


async def test_open_gates_let_all_through_and_closed_ones_nothing_bad(store: Store) -> None:
    worst = totals(failed=100, fallback=100)

    assert await reasons(store, worst, 1, 1) == []
    assert len(await reasons(store, totals(failed=1, ok=99, error=1), 0, 0)) == 2
    assert await reasons(store, totals(ok=1), 0, 0) == []


@pytest.mark.parametrize(
    ("tally", "hopeless"),
    [
        (Tally(fallback=49), False),
        (Tally(fallback=50), True),
        (Tally(fallback=48, ok=2), True),
        (Tally(fallback=47, ok=3), False),
        (Tally(ok=50, thin=50), True),
        (Tally(error=60), True),
        (Tally(fallback=95, ok=5), True),
        (Tally(fallback=94, ok=6), False),
        (Tally(ok=1000), False),
    ],
)
def test_hopeless_is_nearly_all_of_at_least_fifty(tally: Tally, hopeless: bool) -> None:
    assert is_hopeless(tally, 0.05) is hopeless


def test_nothing_is_hopeless_with_an_open_gate() -> None:
    assert not is_hopeless(Tally(fallback=1000), 1)
    assert is_hopeless(Tally(fallback=1000), 0.99)
