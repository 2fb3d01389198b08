"""A whole night by one job spec, killed in every phase, and a short one after it."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from playwright.sync_api import expect

from scripts.judge import JudgeServer
from tests.browser import chromium, page_of
from tests.cli.running import (
    Result,
    Row,
    batchrank,
    gain,
    judge,
    requests,
    serving,
    started,
    windows,
    written,
)
from tests.publishing.reading import docids_at
from tests.publishing.servers import RedisServer, running_redis
from tests.waiting import until

ROWS = requests(queries=40, candidates=12)
TOMORROW = requests(queries=60, candidates=12)
CALLS = 4
"""In flight at a time."""
DAY = ("--date", "2026-03-04")


def candidates(row: Row) -> tuple[str, list[str]]:
    """The qid and docids of a line."""
    return row["query"]["qid"], [one["docid"] for one in row["candidates"]]


def best(row: Row) -> str:
    """The candidate that a perfect judge puts first."""
    qid, docids = candidates(row)
    return max(docids, key=lambda docid: gain(qid, docid))


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with serving(judge(TOMORROW, slots=2, call_seconds=0.02)) as running:
        yield running


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    with running_redis(tmp_path) as running:
        yield running


@pytest.fixture
def job(tmp_path: Path, server: JudgeServer, redis_server: RedisServer) -> Path:
    """A spec with everything in it. Writes to Redis are slow enough to be killed between them."""
    written(tmp_path / "log-2026-03-04.jsonl", ROWS)
    lines = [
        f"{qid} 0 {docid} {round(3 * gain(qid, docid))}"
        for qid, docids in map(candidates, ROWS[:4])
        for docid in docids
    ]
    (tmp_path / "canaries.qrels").write_text("\n".join(lines) + "\n")
    path = tmp_path / "night.toml"
    path.write_text(
        f"""
        input = "log-{{date}}.jsonl"
        output = "out-{{date}}.jsonl"
        store = "night.sqlite"
        report = "report-{{date}}.html"
        base_url = "{server.url}"
        window_size = 6
        concurrency = {CALLS}
        gate_qrels = "canaries.qrels"
        min_overlap = "10%"
        max_fallback = "5%"
        metrics_textfile = "night.prom"

        [publish]
        target = "{redis_server.url}"
        max_ops = 60
        """
    )
    return path


def killed_when(job: Path, has_come: Callable[[], object]) -> None:
    """Begin the night and kill it as soon as it has come to this point."""
    with started("run", "--job", job, *DAY, cwd=job.parent) as process:
        until(has_come)
        process.kill()


def status() -> str:
    """The first line of `batchrank status`."""
    return batchrank("status", "--store", "night.sqlite").out.decode().partition("\n")[0]


def step(job: Path, name: str) -> str | None:
    """How a step after the latest run ended, None while it has not."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(job.parent / "night.sqlite")) as store:
        ((told,),) = store.execute(
            "SELECT json_extract(steps, '$.' || ?) FROM runs ORDER BY id DESC LIMIT 1", (name,)
        )
        return str(told) if told is not None else None
    return None


def test_the_whole_night(
    job: Path, server: JudgeServer, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(job.parent)

    def run(*arguments: object) -> Result:
        return batchrank("run", "--job", job, *DAY, *arguments)

    def unfinished_entries() -> int:
        return sum(1 for _ in redis_server.client.scan_iter(match="batchrank:gen:*"))

    killed_when(job, lambda: len(windows(server)) >= 30)
    assert not Path("out-2026-03-04.jsonl").exists()
    killed_when(job, lambda: Path("out-2026-03-04.jsonl").exists())
    asked = len(windows(server))
    spec = job.read_text()
    job.write_text(spec.replace("max_ops = 60", "max_ops = 10"))
    killed_when(job, lambda: "publishing, writing: " in status() and unfinished_entries() >= 10)
    job.write_text(spec)
    assert "then killed before the steps after the run had ended" in status()
    assert redis_server.client.get("batchrank:current") is None
    killed_when(job, lambda: step(job, "publish"))

    ended = run()
    assert ended.code == 0, ended.err
    assert "complete (exit 0)" in status()
    assert len(windows(server)) == asked, "what was answered is not asked again"
    # Only what was in flight, or on its way to the disk, is asked again.
    assert asked - len(set(windows(server))) <= 3 * CALLS
    yesterday = docids_at(redis_server.url)
    assert len(yesterday) == len(ROWS)
    best = {
        max(row["candidates"], key=lambda one: gain(row["query"]["qid"], one["docid"]))["docid"]
        for row in ROWS
    }
    assert {docids[0] for docids in yesterday.values()} == best
    assert re.search(r"^batchrank_exit_code\{.*\} 0.0$", Path("night.prom").read_text(), re.M)

    # The next night has more queries, and all lists are new; the time is up almost at once.
    rows: list[Row] = [{**row, "candidates": row["candidates"][:11]} for row in TOMORROW]
    written(job.parent / "log-2026-03-05.jsonl", rows)
    short = batchrank("run", "--job", job, "--date", "2026-03-05", "--time-limit", "1s")
    assert short.code == 75, short.err
    today = docids_at(redis_server.url)
    assert today.keys() >= yesterday.keys(), "no entry of yesterday is missing"
    assert "publish: generation 2" in short.err

    with chromium() as browser, page_of(browser) as (page, wrong):
        page.goto((job.parent / "report-2026-03-04.html").as_uri())
        expect(page.get_by_role("heading", level=1)).to_have_text("log-2026-03-04.jsonl")
        assert wrong == []
