"""The snapshot of a run: drawn from a real one, kept beside the store, read again whole."""

from __future__ import annotations

import asyncio
import errno
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from batchrank.errors import NoServerError
from batchrank.formats.sources.source import Source
from batchrank.progress.snapshot import Snapshot
from batchrank.progress.status import read_status, status_path, write_status
from batchrank.progress.trace import Done, PaceByServer, Trace
from batchrank.running.runner import Runner
from batchrank.spec.jobspec import JobSpec
from batchrank.values import QueryStatus, RankedQuery, Status
from scripts.judge import JudgeServer
from tests.cli.running import judge, requests, written
from tests.snapshots import SNAPSHOT


def _runner(
    folder: Path,
    server: JudgeServer,
    seen: list[Snapshot],
    *,
    say: Callable[[str], None] = lambda text: None,
    **settings: object,
) -> Runner:
    source = written(folder / "in.jsonl", requests(queries=30, candidates=12))
    spec = JobSpec.model_validate(
        {
            "store": folder / "store.sqlite",
            "base_url": server.url,
            "window_size": 6,
            "max_fallback": 1,
            **settings,
        }
    )
    return Runner(
        spec,
        Source(str(source)),
        str(folder / "out.jsonl"),
        fresh=False,
        say=say,
        tick=seen.append,
    )


async def test_what_a_start_waits_for_is_shown_while_it_does(tmp_path: Path) -> None:
    shown: list[tuple[str, str | None]] = []

    def say(text: str) -> None:
        shown.append((text, runner._recorder.snapshot(0).waits))

    seen: list[Snapshot] = []
    async with judge(requests(queries=30, candidates=12), kind="ollama") as server:
        runner = _runner(tmp_path, server, seen, say=say, backend="ollama")
        await runner.run()
        expected = f"waiting until {server.url} has loaded judge:latest"
    assert (expected, expected) in shown
    assert [waits for text, waits in shown if text != expected] == [None] * (len(shown) - 1)
    assert seen[-1].waits is None


async def test_a_run_draws_what_it_did(tmp_path: Path) -> None:
    seen: list[Snapshot] = []
    async with judge(requests(queries=30, candidates=12)) as server:
        report = await _runner(tmp_path, server, seen, deadline="23:59").run()
    last = seen[-1]
    assert (last.state, last.exit_code, last.run) == ("ended", 0, 1)
    assert (last.lines, last.known, last.finished, last.open) == (30, 0, 30, 0)
    assert last.share_done == 1.0
    assert last.queries == {"ok": 30}
    assert last.windows == report.totals.tally
    assert [(one.status, one.source, one.count) for one in last.window_counts] == [
        (Status.OK, server.url, 90)
    ]
    (endpoint,) = last.endpoints
    assert (endpoint.url, endpoint.health, endpoint.answered) == (server.url, "well", 90)
    assert last.calls == sum(last.latencies) == sum(endpoint.latencies) == 90
    assert endpoint.prompt_tokens == last.prompt_tokens > 0
    assert [gate.passed for gate in last.gates] == [True, True]
    assert last.deadline is not None
    assert last.store_bytes > 0
    assert len(last.recent) == 20
    latest = last.recent[0]
    assert (latest.status, latest.windows, latest.candidates) == (QueryStatus.OK, 3, 12)
    assert len(latest.top) == 10
    assert latest.top[0].docid == f"{latest.qid}-d{latest.top[0].was}"
    assert latest.risen == sum(move.was > 10 for move in latest.top)
    assert await asyncio.to_thread(read_status, tmp_path / "store.sqlite") == last


@pytest.mark.parametrize("deadline", [None, "23:59"])
async def test_as_it_runs_every_query_is_finished_or_open(
    tmp_path: Path, deadline: str | None
) -> None:
    """Read ahead or by urgency: what waits counts once, and is not done."""
    seen: list[Snapshot] = []
    async with judge(requests(queries=30, candidates=12)) as server:
        runner = _runner(tmp_path, server, seen, concurrency=2, deadline=deadline)
        recorder = runner._recorder
        drawn: list[Snapshot] = []
        finished = recorder.finished

        def note(ranked: RankedQuery, seconds: float) -> None:
            drawn.append(recorder.snapshot(0))
            finished(ranked, seconds)

        recorder.finished = note  # type: ignore[method-assign]
        await runner.run()
    assert len(drawn) == 30
    for number, one in enumerate(drawn):
        assert (one.lines, one.finished) == (30, number)
        assert 30 - number <= one.open <= 30, "those that just ended are open a moment longer"
        assert one.share_done == pytest.approx((30 - one.open) / 30)
        assert (one.seconds_left is None) == (number < 5 or one.open == 30)


async def test_windows_are_counted_by_where_their_answers_came_from(tmp_path: Path) -> None:
    seen: list[Snapshot] = []
    async with judge(requests(queries=30, candidates=12)) as server:
        await _runner(tmp_path, server, seen).run()
        # Another way to put winners together: the segments' answers are in the store already.
        await _runner(tmp_path, server, seen, merge_passes="forward,reverse").run()
    counts = {(one.status, one.source): one.count for one in seen[-1].window_counts}
    assert counts[Status.OK, "store"] >= 60
    assert sum(counts.values()) == 120
    assert seen[-1].calls == counts[Status.OK, server.url]


async def test_a_run_that_fails_tells_why_in_its_last_snapshot(tmp_path: Path) -> None:
    seen: list[Snapshot] = []
    async with judge([]) as server:
        pass  # it is gone again
    with pytest.raises(NoServerError) as failure:
        await _runner(tmp_path, server, seen, wait_for_server="1s").run()
    assert (seen[-1].state, seen[-1].exit_code) == ("ended", 4)
    assert seen[-1].reasons == (str(failure.value),)


def test_a_status_file_is_read_whole_or_not_at_all(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    assert read_status(store) is None
    write_status(store, SNAPSHOT)
    assert read_status(store) == SNAPSHOT
    text = status_path(store).read_bytes()
    for broken in (b"", text[:-9], b"[]", orjson.dumps({**orjson.loads(text), "state": "unheard"})):
        status_path(store).write_bytes(broken)
        assert read_status(store) is None


def test_a_status_holds_queries_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    leftover = tmp_path / "store.sqlite.status.new"
    leftover.touch(0o644)  # of a run that was killed while it wrote
    write_status(store, SNAPSHOT)
    assert stat.S_IMODE(status_path(store).stat().st_mode) == 0o600
    status_path(store).chmod(0o644)  # of an older version
    write_status(store, SNAPSHOT)
    assert stat.S_IMODE(status_path(store).stat().st_mode) == 0o600


def test_how_a_run_ended_needs_no_more_room_than_there_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store.sqlite"
    running = replace(SNAPSHOT, exit_code=None, state="ranking")
    write_status(store, running)

    def full(self: Path, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_bytes", full)
    write_status(store, replace(running, finished=running.finished + 1))
    assert read_status(store) == running, "only the end is worth a file that may be torn"
    ended = replace(SNAPSHOT, exit_code=1, reasons=("the disk is full",))
    write_status(store, ended)
    assert read_status(store) == replace(ended, recent=(), trace=())
    assert list(tmp_path.iterdir()) == [status_path(store)]


def test_a_status_that_can_not_be_written_leaves_nothing(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    status_path(store).mkdir()
    write_status(store, SNAPSHOT)
    assert list(tmp_path.iterdir()) == [status_path(store)]


def test_rates_are_those_of_the_last_minute() -> None:
    trace = Trace(1000.0)
    for second in range(1, 181):
        calls = 10 * min(second, 120) + 2 * max(0, second - 120)
        rates = trace.add(Done(1000.0 + second, second, calls, 0, 0))
    assert (rates.queries, rates.calls) == (1.0, 2.0)


def test_the_rate_of_a_server_is_that_of_its_last_minute_or_since_it_came() -> None:
    pace = PaceByServer()
    old, new = SNAPSHOT.endpoints
    for second in range(1, 181):
        states = [replace(old, answered=10 * min(second, 120))]
        if second > 170:
            states.append(replace(new, answered=4 * (second - 171)))
        rates = [one.rate for one in pace.add(1000.0 + second, states)]
    assert rates == [0.0, 4.0]
    assert PaceByServer().add(0.0, [new])[0].rate == 0.0


def test_a_trace_of_any_length_has_few_points_and_all_calls() -> None:
    trace = Trace(0.0)
    for second in range(1, 10_001):
        trace.add(Done(float(second), 0, 5 * second, 0, 0))
    points = trace.calls_a_second
    assert 50 <= len(points) <= 120
    assert set(points) == {5.0}
    assert 10_000 - trace.step <= len(points) * trace.step <= 10_000


def test_a_trace_keeps_how_slots_were_used() -> None:
    trace = Trace(0.0)
    for second in range(1, 1001):
        busy = 12 if second <= 500 else 4
        trace.add(Done(float(second), 0, second, 0, 0, busy, 16))
    kept = trace.as_dict()
    used, offered = kept["in_flight"], kept["capacity"]
    assert isinstance(used, tuple)
    assert isinstance(offered, tuple)
    assert len(used) == len(offered) == len(trace.calls_a_second) <= 120
    assert (used[0], used[-1], set(offered)) == (12.0, 4.0, {16.0})
    assert kept["step"] == trace.step
