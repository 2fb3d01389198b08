"""A job spec can be the whole night: rank, gate, write, publish, report."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import orjson
import pytest

from batchrank.nightly.after import AfterTheRun
from batchrank.publishing.publication import Publication, Published
from scripts.judge import JudgeServer
from tests.cli.running import Result, Row, batchrank, judge, requests, serving, windows, written
from tests.publishing.reading import docids_at

TODAY = datetime.now().astimezone().date()
ROWS = requests(queries=6, candidates=8)


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with serving(judge(ROWS)) as running:
        yield running


@pytest.fixture
def job(tmp_path: Path, server: JudgeServer) -> Path:
    """A spec with everything in it, and tonight's input."""
    written(tmp_path / f"log-{TODAY}.jsonl", ROWS)
    lines = {
        "input": f"{tmp_path}/log-{{date}}.jsonl",
        "output": f"{tmp_path}/out-{{date}}.jsonl",
        "store": f"{tmp_path}/night.sqlite",
        "base_url": server.url,
    }
    text = "".join(f'{name} = "{value}"\n' for name, value in lines.items())
    path = tmp_path / "night.toml"
    text += f'report = "{tmp_path}/report-{{date}}.html"\n'
    text += f'metrics_textfile = "{tmp_path}/night.prom"\n'
    path.write_text(f'{text}\n[publish]\ntarget = "sqlite:{tmp_path}/cache.sqlite"\n')
    return path


def target(job: Path) -> str:
    return f"sqlite:{job.parent}/cache.sqlite"


def run(job: Path, *arguments: object) -> Result:
    return batchrank("run", "--job", job, *arguments)


def status(job: Path) -> str:
    return batchrank("status", "--store", job.parent / "night.sqlite").out.decode()


def told_by_metrics(job: Path) -> str:
    return (job.parent / "night.prom").read_text()


def other_store(job: Path, server: JudgeServer) -> Path:
    """The store of a run over two queries that no night has."""
    store = job.parent / "other.sqlite"
    rows = [
        {**row, "query": {**row["query"], "text": f"other {at}"}} for at, row in enumerate(ROWS)
    ]
    source = written(job.parent / "other.jsonl", rows[:2])
    ended = batchrank("run", source, "--store", store, "--base-url", server.url)
    assert ended.code == 0, ended.err
    return store


def test_what_was_ranked_is_published(job: Path) -> None:
    ended = run(job, "--json")
    assert ended.code == 0, ended.err
    assert len(docids_at(target(job))) == len(ROWS)
    assert "publish: generation 1 of" in ended.err
    assert ended.json["steps"]["publish"].startswith("generation 1 of ")
    assert "6 entries, 6 from this run, 0 carried over" in status(job)
    page = job.parent / f"report-{TODAY}.html"
    assert f"report: {page}, " in ended.err
    assert page.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_a_night_that_is_repeated_publishes_nothing_anew_by_either_command(
    job: Path, kind: str
) -> None:
    """So that `--rollback` still reaches the night before."""
    job.write_text(job.read_text().replace('target = "sqlite:', f'target = "{kind}:'))
    place = target(job).replace("sqlite:", f"{kind}:", 1)
    assert run(job).code == 0
    before = docids_at(place)
    for _ in range(2):
        again = batchrank("publish", job.parent / "night.sqlite", place)
        assert b"generation 1 is current already; nothing was written" in again.out
        assert "was current already" in run(job).err
    assert docids_at(place) == before
    assert batchrank("publish", place, "--rollback").code == 2


def test_a_stop_while_publishing_says_what_was_not_begun(
    job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Publication.run

    async def stopped(self: Publication) -> Published:
        os.kill(os.getpid(), signal.SIGINT)
        while not self.is_stopping:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0)
        return await real(self)

    with monkeypatch.context() as patch:
        patch.setattr(Publication, "run", stopped)
        ended = run(job)
    assert ended.code == 75, ended.err
    assert "SIGINT: stopping, the batch on its way is waited for; once more" in ended.err
    assert "publish: failed: SIGINT received; readers keep what they have" in ended.err
    assert "report: not begun: SIGINT received" in ended.err
    unfinished = batchrank("unfinished", job)
    assert (unfinished.code, unfinished.err) == (0, "")
    assert unfinished.out.startswith(f"run 1 of {job.parent}/log-{TODAY}.jsonl, begun ".encode())
    again = run(job)
    assert again.code == 0, again.err
    unfinished = batchrank("unfinished", job)
    assert (unfinished.code, unfinished.out) == (1, b"no night is unfinished\n")
    assert "report: " in again.err
    assert "not begun" not in status(job)


def test_a_failed_publication_is_told_and_done_by_the_same_command(
    job: Path, server: JudgeServer
) -> None:
    spec = job.read_text()
    assert batchrank("publish", other_store(job, server), target(job)).code == 0
    job.write_text(f"{spec}replace = true\n")
    failed = run(job)
    assert failed.code == 3
    assert "publish: failed: 0 of 2 keys" in failed.err
    assert "publish: failed: " in status(job)
    assert "ranked after" in status(job)
    assert "a step after it was refused (exit 3), as the same command would be again" in status(job)
    told = told_by_metrics(job)
    assert re.search(rf"^batchrank_exit_code\{{.*\}} {failed.code}.0$", told, re.MULTILINE)
    assert "\nbatchrank_last_success_timestamp_seconds{" not in told
    assert re.search(r'^batchrank_step_exit_code\{.*"publish".*\} 3.0$', told, re.MULTILINE)
    assert re.search(r'^batchrank_step_exit_code\{.*"report".*\} 0.0$', told, re.MULTILINE)
    assert "\nbatchrank_last_publication_timestamp_seconds{" not in told
    summary = orjson.loads((job.parent / f"out-{TODAY}.jsonl.summary.json").read_bytes())
    assert summary["exit_code"] == failed.code
    assert (job.parent / f"out-{TODAY}.jsonl").exists()

    asked = len(windows(server))
    job.write_text(spec)
    again = run(job)
    assert again.code == 0, again.err
    assert len(docids_at(target(job))) == len(ROWS) + 2
    assert len(windows(server)) == asked
    assert "failed:" not in status(job)
    assert "complete (exit 0)" in status(job)
    assert "\nbatchrank_last_publication_timestamp_seconds{" in told_by_metrics(job)


def test_a_rejected_night_publishes_nothing(job: Path) -> None:
    assert run(job).code == 0
    before = docids_at(target(job))
    source = job.parent / f"log-{TODAY}.jsonl"
    written(source, [*ROWS[:4], b"{}", b"{}"])
    rejected = run(job)
    assert rejected.code == 3
    said = "publish: not done, since the run was rejected"
    assert said in rejected.err
    assert said in status(job)
    page = (job.parent / f"report-{TODAY}.html").read_text()
    assert said.removeprefix("publish: ") in page
    assert "\nbatchrank_step_exit_code{" in told_by_metrics(job)
    assert 'step="publish"' not in told_by_metrics(job).partition("step_exit_code{")[2]
    assert "report: " in rejected.err
    assert docids_at(target(job)) == before


def test_a_short_night_keeps_what_was_published(job: Path) -> None:
    assert run(job).code == 0
    before = docids_at(target(job))
    source = job.parent / f"log-{TODAY}.jsonl"
    changed: list[Row] = [{**row, "candidates": row["candidates"][:7]} for row in ROWS]
    written(source, changed)
    short = run(job, "--time-limit", "0s")
    assert short.code == 75, short.err
    assert docids_at(target(job)).keys() == before.keys()


def test_a_short_night_beyond_a_gate_says_that_nothing_is_published(job: Path) -> None:
    written(job.parent / f"log-{TODAY}.jsonl", [*ROWS[:4], b"{}", b"{}"])
    ended = run(job, "--time-limit", "0s", "--json")
    assert ended.code == 75, ended.err
    assert ended.json["steps"]["publish"] == "not done, since the run was stopped early"


@pytest.mark.parametrize("step", ["publish", "report"])
def test_a_step_that_breaks_is_no_success(
    job: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    async def broken(*_: object) -> str:
        raise ValueError("torn")

    with monkeypatch.context() as patched:
        name = {"publish": "_published", "report": "_reported"}[step]
        patched.setattr(AfterTheRun, name, broken)
        with pytest.raises(ValueError, match="torn"):
            run(job)
    told = told_by_metrics(job)
    for metric, value in (("running", 0), ("exit_code", 1)):
        assert re.search(rf"^batchrank_{metric}\{{.*\}} {value}.0$", told, re.MULTILINE)
    assert re.search(rf'^batchrank_step_exit_code\{{.*"{step}".*\}} 1.0$', told, re.MULTILINE)
    assert "\nbatchrank_last_success_timestamp_seconds{" not in told
    assert f"{step}: failed: ValueError: torn" in status(job)
    assert "a step after it failed (exit 1)" in status(job)
    again = run(job)
    assert again.code == 0, again.err
    assert "complete (exit 0)" in status(job)


def test_a_night_whose_publication_breaks_has_its_report(
    job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it is begun again, and breaks again."""

    async def broken(*_: object) -> Published:
        raise MemoryError("no room")

    page = job.parent / f"report-{TODAY}.html"
    with monkeypatch.context() as patched:
        patched.setattr(Publication, "run", broken)
        for _ in range(2):
            with pytest.raises(MemoryError, match="no room"):
                run(job)
            assert "failed: MemoryError: no room" in page.read_text()
            assert f"report: {page}, " in status(job)
            summary = orjson.loads((job.parent / f"out-{TODAY}.jsonl.summary.json").read_bytes())
            assert summary["exit_code"] == 1
            assert summary["steps"]["publish"] == "failed: MemoryError: no room"
            page.unlink()
    assert run(job).code == 0
    assert "generation 1 of" in page.read_text()


def test_a_target_that_is_a_file_of_the_run_is_refused(job: Path) -> None:
    text = job.read_text().replace("cache.sqlite", "night.sqlite")
    job.write_text(text)
    refused = run(job)
    assert refused.code == 2
    assert "night.sqlite" in refused.err


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('status = "fine"', "publish status fine: use some of"),
        ('ttl = "soon"', "'soon' is no duration"),
        ('password_env = "NOT_THERE"', "NOT_THERE"),
        ("keep = 0", "publish keep must be at least 1"),
        ('targe = "x"', "unknown key 'targe'; did you mean 'target'"),
    ],
)
def test_what_can_not_be_published_is_said_before_anything_is_asked(
    job: Path, server: JudgeServer, line: str, complaint: str
) -> None:
    job.write_text(f"{job.read_text()}{line}\n")
    refused = run(job)
    assert refused.code == 2
    assert complaint in refused.err
    assert not server.calls
