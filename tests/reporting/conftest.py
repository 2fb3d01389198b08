"""A store of two nights with hostile texts, bad answers, failed lines and judgements."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.cli.conftest import rows, server, shell, source
from tests.cli.running import Row, batchrank, gain, judge, requests, serving, written

__all__ = ["rows", "server", "shell", "source"]

HOSTILE = (
    "<script>document.title='taken'</script></style></title>]]>-->"
    "<img src=x onerror=\"document.title='taken'\"> \u202egnal\u2066 \x1b[31m {{ 7 * 7 }} & $x^2$"
)
TRACE = {"step": 60.0, "in_flight": [8.0, 7.5, 2.0], "capacity": [8.0] * 3}


@dataclass(frozen=True)
class Nights:
    """Where things lie: run 1 asked in one way, run 2, the latest, in another."""

    folder: Path

    @property
    def store(self) -> Path:
        """The store of both."""
        return self.folder / "night.sqlite"

    @property
    def qrels(self) -> Path:
        """Judgements of most queries."""
        return self.folder / "judged.qrels"


def queries() -> list[Row]:
    """Thirty queries; the first is what nobody should trust."""
    made = requests(queries=30, candidates=24)
    made[0]["query"]["text"] += HOSTILE
    made[0]["candidates"][20]["docid"] = HOSTILE
    return made


@pytest.fixture(scope="session")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Nights:
    """Two runs, of which some answers are prose; the second kept how its slots were used."""
    made = Nights(tmp_path_factory.mktemp("nights"))
    asked = queries()
    source = written(made.folder / "log.jsonl", [*asked, b"{torn", b'{"qid": "bare"}'])
    lines = []
    for row in asked[:20]:
        qid = row["query"]["qid"]
        for place, candidate in enumerate(row["candidates"]):
            if candidate["docid"] != HOSTILE:
                grade = round(3 * gain(qid, candidate["docid"]) ** 3)
                lines.append(f"{qid} 0 {candidate['docid']} {grade if place else 3}\n")
    made.qrels.write_text("".join(lines))
    bad: dict[str, Any] = {"malformed_rate": 0.15, "malformed": ("prose",), "sound_trials": True}
    with serving(judge(asked, constraints=frozenset(), noise=0.2, **bad)) as server:
        for flags in (("--window-size", "8"), ("--window-size", "12", "--no-re-ask")):
            ended = batchrank(
                *("run", source, "--store", made.store, "--base-url", server.url, *flags),
                *("--max-fallback", "1", "--max-failed", "1"),
            )
            assert ended.code == 0, ended.err
    # A run of a second keeps no trace to look at.
    with closing(sqlite3.connect(made.store)) as store:
        ((summary,),) = store.execute("SELECT summary FROM runs WHERE id = 2")
        kept = orjson.dumps({**orjson.loads(summary), "trace": TRACE}).decode()
        store.execute("UPDATE runs SET summary = ? WHERE id = 2", (kept,))
        store.commit()
    return made


@pytest.fixture(scope="session")
def page_file(nights: Nights) -> Path:
    """The page with everything in it."""
    path = nights.folder / "report.html"
    price = nights.folder / "price.toml"
    price.write_text("[cost]\ngpu_hour = 2.5\ngpus = 2\n")
    ended = batchrank(
        *("report", nights.store, "-o", path, "--qrels", nights.qrels),
        *("--against", f"{nights.store}#1", "--job", price),
    )
    assert ended.code == 0, ended.err
    assert (ended.out, ended.err) == (b"", "")
    return path


@pytest.fixture(scope="session")
def plain_file(nights: Nights) -> Path:
    """The page about the first run, without anything beside it."""
    path = nights.folder / "plain.html"
    ended = batchrank("report", nights.store, "-o", path, "--run", "1")
    assert ended.code == 0, ended.err
    return path
