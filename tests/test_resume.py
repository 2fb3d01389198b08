"""A job that was stopped, killed, changed or repeated asks only what it has no answer to."""

from __future__ import annotations

import signal
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from scripts.crash_test import crash_test
from scripts.judge import JudgeServer
from tests.cli.running import (
    Result,
    Row,
    batchrank,
    docids,
    judge,
    requests,
    rows_of,
    serving,
    started,
    windows,
    written,
)
from tests.waiting import PATIENCE, until

ROWS = requests(queries=6, candidates=12)
SMALL = ("--window-size", "6", "--concurrency", "4")
"""Two segments and a merge a query: 18 windows in all."""
WINDOWS = 18


class Job:
    """A job over `ROWS` in a folder, to be run again and again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source = written(folder / "in.jsonl", ROWS)
        self.output = folder / "in.ranked.jsonl"
        self.store = folder / "store.sqlite"

    def arguments(self, url: str, *more: object) -> tuple[object, ...]:
        return ("run", self.source, "--store", self.store, "--base-url", url, *SMALL, *more)

    def run(self, url: str, *more: object) -> Result:
        return batchrank(*self.arguments(url, *more))

    def calls(self, url: str, *more: object) -> int:
        """The calls of a run that ends well."""
        found = self.run(url, *more, "--json")
        assert found.code == 0, found.err
        calls: int = found.json["calls"]
        return calls

    def select(self, sql: str) -> list[Any]:
        with closing(sqlite3.connect(self.store)) as store:
            return store.execute(sql).fetchall()


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_killed_at_random_moments_it_costs_only_what_was_in_flight(tmp_path: Path) -> None:
    figures = crash_test(tmp_path, kills=20, queries=30, seed=2)
    assert figures.failures == []
    assert figures.kills == 20
    assert figures.asked_twice == 0
    assert figures.calm_calls < figures.calls <= figures.calm_calls + figures.lost


def test_the_same_job_again_makes_no_call_and_needs_no_server(job: Job) -> None:
    with serving(judge(ROWS)) as server:
        first = job.run(server.url)
    assert first.code == 0, first.err
    assert len(windows(server)) == WINDOWS
    expected = job.output.read_bytes()

    for address in (server.url, f"{server.url}/", f"{server.url}/v1"):
        job.output.unlink()
        again = job.run(address)
        assert again.code == 0, again.err
        assert "already finished before this run: 6 queries, no call" in again.err
        assert job.output.read_bytes() == expected


def test_a_rejected_job_stays_rejected_without_a_call(job: Job) -> None:
    settings: dict[str, Any] = {"malformed_rate": 1.0, "malformed": ("prose",)}
    spoiled = judge(ROWS, constraints=frozenset(), sound_trials=True, **settings)
    with serving(spoiled) as server:
        assert job.run(server.url).code == 3
    again = job.run(server.url)
    assert again.code == 3, again.err
    assert "spent: 0 calls" in again.err
    assert not job.output.exists()
    # What a gate allows is no part of the job: the same rankings can be let through.
    assert job.run(server.url, "--max-fallback", "100%").code == 0
    assert [docids(row) for row in rows_of(job.output)] == [
        [candidate["docid"] for candidate in row["candidates"]] for row in ROWS
    ]


def test_only_changed_lines_are_asked_again(job: Job) -> None:
    with serving(judge(ROWS)) as server:
        assert job.calls(server.url) == WINDOWS
        before = {row["qid"]: row for row in rows_of(job.output)}

        changed: list[Row] = orjson.loads(orjson.dumps(ROWS))
        # The last candidates of the first query swap places: new windows and nothing else.
        changed[0]["candidates"][-2:] = changed[0]["candidates"][:-3:-1]
        written(job.source, changed)
        assert job.calls(server.url) == 3
        rows = rows_of(job.output)
        assert [row["qid"] for row in rows] == [f"q{n}" for n in range(1, 7)]
        assert rows[1:] == list(before.values())[1:]

    # From here on no server is needed.
    written(job.source, [ROWS[4], ROWS[1], ROWS[3]])
    assert job.calls(server.url) == 0
    assert rows_of(job.output) == [before["q5"], before["q2"], before["q4"]]


def test_identical_queries_under_other_qids_cost_one_set_of_calls(job: Job) -> None:
    twins = [
        {**ROWS[0], "query": {"qid": name, "text": ROWS[0]["query"]["text"]}}
        for name in ("first", "second", "third")
    ]
    written(job.source, [*twins, twins[0]])
    with serving(judge(ROWS)) as server:
        assert job.calls(server.url) == 3
    rows = rows_of(job.output)
    assert [row["qid"] for row in rows] == ["first", "second", "third", "first"]
    assert len({tuple(docids(row)) for row in rows}) == 1
    assert {row["calls"] for row in rows} == {3}


def test_equal_windows_of_other_settings_come_from_the_store(job: Job) -> None:
    with serving(judge(ROWS)) as server:
        assert job.calls(server.url) == WINDOWS
        assert job.calls(server.url, "--depth", "50") == 0  # another job, the same windows
        assert job.calls(server.url, "--max-fallback", "0.5", "--timeout", "9") == 0
        # The merge is asked for fewer documents: new requests; the segments are the same.
        assert job.calls(server.url, "--top-k", "2") == 6
        assert {len(row["ranking"]) for row in rows_of(job.output)} == {2}
        # All are asked for in segments, as they already were in merges.
        assert job.calls(server.url, "--answer", "full") == 12
    # Where all are asked for, top-k only cuts what is written: it is the same job.
    assert job.calls(server.url, "--answer", "full", "--top-k", "2") == 0


@pytest.mark.parametrize("other", [("--window-size", "4"), ("--max-doc-tokens", "9")])
def test_a_job_is_itself_again_after_another_one(job: Job, other: tuple[str, str]) -> None:
    with serving(judge(ROWS)) as server:
        assert job.calls(server.url) == WINDOWS
        expected = job.output.read_bytes()
        ended = job.run(server.url, *other)
        assert ended.code == 0, ended.err
        assert "is not what it was" not in ended.err
        differing = job.output.read_bytes()
        assert differing != expected
    for more, output in (((), expected), (other, differing)):
        assert job.calls(server.url, *more) == 0
        assert job.output.read_bytes() == output


def test_fresh_asks_everything_anew(job: Job) -> None:
    with serving(judge(ROWS)) as server:
        assert job.calls(server.url) == WINDOWS
        expected = job.output.read_bytes()
        assert job.calls(server.url, "--fresh") == WINDOWS
        assert job.calls(server.url) == 0
        assert set(Counter(windows(server)).values()) == {2}
    assert job.output.read_bytes() == expected


def test_a_fresh_run_that_was_killed_stays_fresh(job: Job) -> None:
    with serving(judge(ROWS, call_seconds=0.05)) as server:
        assert job.calls(server.url) == WINDOWS
        process = started(*job.arguments(server.url, "--fresh"), cwd=job.folder)
        with process:
            until(lambda: len(windows(server)) >= WINDOWS + 6)
            process.kill()
        until(lambda: server.stats()["in_flight"] == 0)
        lost = len(windows(server)) - WINDOWS - _answers(job, since_run=2)
        assert 0 <= lost <= 2 * 4
        job.calls(server.url)  # without --fresh
    asked = Counter(windows(server))
    # Everything was asked a second time; a third time only what the kill lost.
    assert min(asked.values()) == 2
    assert asked.total() == 2 * WINDOWS + lost
    assert _answers(job, since_run=2) == WINDOWS


def _answers(job: Job, since_run: int) -> int:
    (count,) = job.select(f"SELECT count(*) FROM answers WHERE run >= {since_run}")[0]
    return int(count)


def test_another_model_at_the_same_address_is_another_job(job: Job) -> None:
    with serving(judge(ROWS, model="younger")) as server:
        assert job.calls(server.url) == WINDOWS
    port = int(server.url.rpartition(":")[2])
    with serving(judge(ROWS, model="older", port=port)) as server:
        # Finished work is read without asking who is there now.
        assert job.calls(server.url) == 0
        assert {row["model"] for row in rows_of(job.output)} == {"younger"}

        written(job.source, [*ROWS[:5], {**ROWS[5], "query": {"qid": "new", "text": "newer"}}])
        tonight = f"{datetime.now().astimezone() + timedelta(hours=9):%H:%M}"
        found = job.run(server.url, "--json", "--deadline", tonight)
    assert found.code == 0, found.err
    assert "this is another job" in found.err
    assert found.json["calls"] == WINDOWS
    assert {row["model"] for row in rows_of(job.output)} == {"older"}
    # Of the run that was begun for the first model nothing is left: no night of it is unfinished,
    # and the one that took its place has the same deadline.
    assert job.select("SELECT id, exit, deadline IS NULL FROM runs ORDER BY id") == [
        (1, 0, 1),
        (2, 0, 1),
        (3, 0, 0),
    ]
    assert job.select("SELECT run, count(*) FROM lines GROUP BY run") == [(1, 6), (2, 6), (3, 6)]


@pytest.fixture
def hears_hangups() -> Iterator[None]:
    """Processes get SIGHUP here as from a terminal, also where the tests run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hears_hangups")
def test_a_signal_waits_for_calls_in_flight_and_loses_nothing(job: Job) -> None:
    with serving(judge(ROWS, call_seconds=0.1)) as server:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            said = _stopped_midway(job, server, number)
            assert f"{number.name}: stopping, calls in flight are waited for" in said
            assert f"stopped: {number.name} received" in said
            assert "the same command goes on" in said
            assert "Traceback" not in said
            assert not job.output.exists()
            # Each call that was sent got its answer, and each answer is kept.
            assert {call.status for call in server.calls} == {200}
            assert len(windows(server)) == _answers(job, since_run=1) < WINDOWS
        assert batchrank("status", "--store", job.store, "--json").json["exit"] == 75
        probes = len(server.calls) - len(windows(server))
        assert job.run(server.url).code == 0
        # Neither windows nor the preflight were repeated.
        assert len(windows(server)) == len(set(windows(server))) == WINDOWS
        assert len(server.calls) - len(windows(server)) == probes
    assert len(rows_of(job.output)) == 6


def _stopped_midway(job: Job, server: JudgeServer, number: signal.Signals) -> str:
    """Send a signal to a process as soon as it got an answer; what it says, once it has ended."""
    before = len(windows(server))
    process = started(*job.arguments(server.url, "--concurrency", "2"), cwd=job.folder)
    until(lambda: len(windows(server)) > before)
    process.send_signal(number)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 75, said
    return said


def test_under_nohup_a_run_outlives_its_terminal(job: Job) -> None:
    with serving(judge(ROWS, call_seconds=0.05)) as server:
        ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does; a child inherits it
        try:
            process = started(*job.arguments(server.url, "--concurrency", "2"), cwd=job.folder)
        finally:
            signal.signal(signal.SIGHUP, ignored)
        until(lambda: len(windows(server)) > 0)
        process.send_signal(signal.SIGHUP)
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    assert len(rows_of(job.output)) == 6


def test_a_store_has_one_runner_who_can_be_watched_and_stopped_at_once(job: Job) -> None:
    with serving(judge(ROWS)) as quick:
        assert job.calls(quick.url, "--limit", "1") == 3
    port = int(quick.url.rpartition(":")[2])
    with serving(judge(ROWS, call_seconds=3600, port=port)) as server:
        # The model is known and its job was interrupted: no preflight that would wait.
        _interrupt(job)
        process = started(*job.arguments(server.url), cwd=job.folder)
        until(lambda: server.stats()["in_flight"] == 4)

        second = job.run(server.url)
        assert second.code == 1
        assert f"in use by process {process.pid} on " in second.err
        until(lambda: _status(job).get("in_flight") == 4)
        assert _status(job)["process"] == process.pid
        said = batchrank("status", "--store", job.store)
        assert said.code == 0
        assert (
            f"running (process {process.pid}): ranking, 1 of 6 queries finished"
            in said.out.decode()
        )

        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert "calls in flight are waited for" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        # Sooner than the grace of 25 s: calls of an hour are dropped.
        _, rest = process.communicate(timeout=20)
        assert process.returncode == 75, rest
        assert "Traceback" not in rest
    assert _answers(job, since_run=1) == 3


def _status(job: Job) -> dict[str, Any]:
    found: dict[str, Any] = batchrank("status", "--store", job.store, "--json").json
    return found


def _interrupt(job: Job) -> None:
    """Let the latest run look as if it had been stopped."""
    with closing(sqlite3.connect(job.store)) as store:
        store.execute("UPDATE runs SET exit = 75")
        store.commit()


def test_a_server_that_goes_away_leaves_a_job_that_can_go_on(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("batchrank.serving.backoff._FIRST_SECONDS", 0.001)
    written(job.source, [*ROWS, b"{torn"])
    with serving(judge(ROWS)) as server:
        assert job.calls(server.url, "--limit", "2") == 6
    _interrupt(job)
    port = int(server.url.rpartition(":")[2])
    # It still says who it is, but hangs up on every window.
    with serving(judge(ROWS, port=port, error_rate=1.0, errors=("reset",))):
        gone = job.run(server.url, "--wait-for-server", "1s")
    # Not 3, although a failed line of seven is beyond the gate: it is too early to judge.
    assert gone.code == 4, gone.err
    (reason,) = [line for line in gone.err.splitlines() if "stopped: " in line]
    assert server.url in reason
    assert "Traceback" not in gone.err
    with serving(judge(ROWS, port=port)):
        assert job.calls(server.url, "--max-failed", "1") == WINDOWS - 6
