"""`batchrank.cache`: what look-ups say, asynchronously and not, and what it needs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchrank.cache import Cache, CacheStatus, Found, SyncCache
from batchrank.cache.lookup import ordered
from tests.conftest import ROOT
from tests.publishing.conftest import Nights

DOCIDS = st.lists(st.sampled_from("abcdefgh"), unique=True)


@pytest.fixture
def nights(store: Path, tmp_path: Path) -> Nights:
    """One night, published to SQLite."""
    nights = Nights(store, f"sqlite:{tmp_path / 'cache.sqlite'}")
    nights.rank({"What causes tides?": ["d7", "d2", "d9"]})
    nights.published()
    return nights


@pytest.mark.parametrize(
    ("candidates", "status", "docids"),
    [
        (None, "hit", ("d7", "d2", "d9")),
        (["d2", "d7"], "hit", ("d7", "d2")),
        (["d2", "d7", "d2"], "hit", ("d7", "d2")),
        (["x", "d9", "y", "d7"], "partial", ("d7", "d9", "x", "y")),
        (["y", "x"], "miss", ("y", "x")),
        ([], "hit", ()),
    ],
)
def test_what_a_look_up_says(
    nights: Nights, candidates: Sequence[str] | None, status: str, docids: tuple[str, ...]
) -> None:
    with SyncCache(nights.target) as cache:
        found = cache.get(" what causes TIDES?", candidates)
    assert (found.status, found.docids, found.generation) == (status, docids, 1)


def test_queries_that_are_not_there(nights: Nights) -> None:
    with SyncCache(nights.target) as cache:
        found = cache.get("tides", ["b", "a", "b"])
        assert (found.status, found.docids, found.generation) == ("miss", ("b", "a"), 1)
        assert cache.get("tides").docids == ()


def test_integers_are_docids_and_what_is_none_is_the_callers_error(store: Path) -> None:
    nights = Nights(store, f"sqlite:{store.parent / 'numbers.sqlite'}")
    nights.rank({"tides": ["7", "2"]})
    nights.published()
    with SyncCache(nights.target) as cache:
        mixed: list[Any] = [2, np.int64(7), "x"]
        found = cache.get("tides", mixed)
        assert (found.status, found.docids) == ("partial", ("7", "2", "x"))
        assert cache.get("waves", [3, 1]).docids == ("3", "1")
    wrong: list[tuple[Any, Any, str]] = [
        (None, ["a"], r"the query is None \(NoneType\), expected a text"),
        (b"tides", None, "the query is b'tides'"),
        ("tides", "72", "the candidates are '72', expected a list of docids"),
        *(("tides", [one], f"a candidate is {one}") for one in (None, True, 1.5)),
    ]
    for query, candidates, said in wrong:
        with SyncCache(nights.target) as cache, pytest.raises(ValueError, match=said):
            cache.get(query, candidates)
        with pytest.raises(ValueError, match=said):
            asyncio.run(_got(nights.target, query, candidates))


async def _got(url: str, query: Any, candidates: Any) -> Found:
    async with Cache(url) as cache:
        return await cache.get(query, candidates)


def test_a_file_can_be_shipped_while_it_is_read(nights: Nights, tmp_path: Path) -> None:
    """What is published stands in the file itself, not in the log beside it."""
    shipped = tmp_path / "shipped.sqlite"
    with SyncCache(nights.target) as cache:
        assert cache.get("What causes tides?").generation == 1
        nights.rank({"What causes tides?": ["d2", "d7"]})
        nights.published()
        shipped.write_bytes((tmp_path / "cache.sqlite").read_bytes())
        assert cache.get("What causes tides?").generation == 2
    with SyncCache(f"sqlite:{shipped}") as cache:
        assert cache.get("What causes tides?").docids == ("d2", "d7")


@given(DOCIDS, DOCIDS)
def test_every_candidate_comes_back_once(stored: list[str], candidates: list[str]) -> None:
    found = ordered(stored, candidates, 1)
    known = set(stored) & set(candidates)
    assert sorted(found.docids) == sorted(candidates)
    assert list(found.docids[: len(known)]) == [docid for docid in stored if docid in known]
    assert list(found.docids[len(known) :]) == [d for d in candidates if d not in known]
    assert (found.status is CacheStatus.HIT) == (known == set(candidates))


def test_a_switch_is_seen_by_the_next_look_up(nights: Nights) -> None:
    """And so are other keys, of which a reader is not told beforehand."""

    cache = Cache(nights.target)
    with asyncio.Runner() as runner:

        def get(query: str, candidates: Sequence[str] | None = None) -> Found:
            return runner.run(cache.get(query, candidates))

        assert get("WHAT causes tides?").docids == ("d7", "d2", "d9")
        nights.rank({"Tides": ["d2", "d1"]})
        nights.published(
            "--normalise", "none", "--key-candidates", "--replace", "--min-coverage", "0"
        )
        found = get("Tides", ["d1", "d2"])
        assert (found.status, found.docids, found.generation) == ("hit", ("d2", "d1"), 2)
        assert get("tides", ["d1", "d2"]).status == "miss"
        assert get("Tides", ["d1"]).status == "miss"
        with pytest.raises(ValueError, match="include the set of candidates"):
            get("Tides")
        runner.run(cache.close())


@pytest.mark.parametrize("url", ["jsonl:x", "http://localhost", "", "sqlite:"])
def test_urls_that_name_no_cache(url: str) -> None:
    with pytest.raises(ValueError, match="give redis://"):
        SyncCache(url)


def test_it_loads_nothing_else_of_batchrank() -> None:
    code = "import sys, batchrank.cache; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    loaded = set(done.stdout.split())
    assert {name for name in loaded if name.startswith("batchrank")} == {
        "batchrank",
        "batchrank.version",
        "batchrank.cache",
        "batchrank.cache.cache",
        "batchrank.cache.lookup",
        "batchrank.cache.sqlite",
        "batchrank.entries",
        "batchrank.errors",
    }
    assert not loaded & {"aiohttp", "aiosqlite", "pydantic", "typer", "rich", "redis"}
