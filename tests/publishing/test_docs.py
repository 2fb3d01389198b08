"""What docs/publishing.md says to programs is so."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest

from tests.conftest import ROOT
from tests.publishing.conftest import Nights, key
from tests.publishing.servers import RedisServer
from tests.test_entries import CANDIDATES, FROZEN

TEXT = (ROOT / "docs" / "publishing.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    """The page's code in a language."""
    found = re.search(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_digests_are_those_that_are_frozen() -> None:
    rows = re.findall(r"^\| .* \| `([0-9a-f]{64})` \|$", TEXT, re.MULTILINE)
    assert rows == list(FROZEN.values())
    assert CANDIDATES in TEXT


@pytest.fixture
def nights(store: Any, redis_server: RedisServer) -> Nights:
    """One night in Redis."""
    nights = Nights(store, redis_server.url)
    nights.rank({"What causes tides?": ["d7", "d2", "d9"]})
    nights.published()
    return nights


def test_the_script_reads_an_entry(nights: Nights, redis_server: RedisServer) -> None:
    script = redis_server.client.register_script(block("lua"))
    generation, value = cast(tuple[str, str], script(args=["batchrank", key("what causes tides?")]))
    assert generation == "1"
    assert value.startswith('{"docids":["d7","d2","d9"],"scores":[3,2,1],"model":')
    assert script(args=["elsewhere", "x"]) is None


def test_the_program_reads_it(nights: Nights, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(block("python").replace("redis://cache:6379/0", nights.target), names)
    assert capsys.readouterr().out == "partial ('d7', 'd2', 'new') 1\n"
    search: Callable[[str, list[str]], Coroutine[Any, Any, tuple[str, ...]]] = names["search"]
    found = asyncio.run(search("what causes tides?", ["d9", "d7"]))
    assert found == ("d7", "d9")


def test_the_statement_reads_it_from_sqlite(nights: Nights, tmp_path: Any) -> None:
    import sqlite3
    from contextlib import closing

    nights.target = f"sqlite:{tmp_path / 'cache.sqlite'}"
    nights.published()
    found = re.search(r"In SQLite: `([^`]+)`", TEXT)
    assert found is not None
    with closing(sqlite3.connect(tmp_path / "cache.sqlite")) as db:
        sql = found[1].replace("unixepoch()", "strftime('%s')")  # SQLite has it since 3.38
        ((value,),) = db.execute(sql, (key("what causes tides?"),)).fetchall()
    assert value.startswith('{"docids":["d7","d2","d9"]')
