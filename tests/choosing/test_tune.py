"""`tune` finds the frontier, pays for every window once, keeps to its budget, and resumes."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from batchrank.running.report import Report
from batchrank.running.runner import Runner
from batchrank.spec.loading import load_spec
from scripts.judge import JudgeConfig, JudgeServer, read_knowledge
from tests.choosing.conftest import QUERIES, asked
from tests.cli.running import (
    Row,
    batchrank,
    judge,
    requests,
    rows_of,
    serving,
    started,
    windows,
    written,
)
from tests.dl19 import dl19
from tests.evaluation.files import qrels
from tests.waiting import PATIENCE, until

GRID = """
[[try]]
window_size = [6, 12]
answer = ["winners", "full"]

[[try]]
answer = "logprobs"

[[try]]
stage = [[{ depth = 24 }, { strategy = "single", depth = 10 }]]

[[try]]
strategy = "sliding"
stride = 30
"""


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    path = tmp_path / "grid.toml"
    path.write_text(GRID)
    return path


def test_the_frontier_and_a_job_that_runs_as_is(
    rows: list[Row], source: Path, judged: Path, grid: Path, tmp_path: Path
) -> None:
    flags = ("--qrels", judged, "--grid", grid)
    with serving(judge(rows, noise=0.2, noise_by="request")) as server:
        text = asked("tune", source, *flags, "--base-url", server.url).out.decode()
        paid = windows(server)
        # Whatever settings have in common was asked once.
        assert len(paid) == len(set(paid))
        found = asked("tune", source, *flags, "--base-url", server.url, "--json").json
        assert (len(windows(server)), found["calls"]) == (len(paid), 0)
        result = asked("run", source, "--job", "tuned.toml", "--json")
    assert result.json["queries"] == {"ok": QUERIES}
    assert len(rows_of(tmp_path / "in.ranked.jsonl")) == QUERIES

    tried = found["tried"]
    assert [one["cost"] for one in tried] == sorted(one["cost"] for one in tried)
    for one in tried:
        cheaper = [other for other in tried if other["cost"] <= one["cost"]]
        better = any(other["ndcg"] > one["ndcg"] for other in cheaper)
        assert one["on_frontier"] is not better
        weighted = one["prompt_tokens"] + 10 * one["generated_tokens"]
        assert one["cost"] == pytest.approx(weighted)
    chosen = next(one for one in tried if one["setting"] == found["chosen"])
    assert chosen["on_frontier"]
    spec = load_spec(Path("tuned.toml"), {})
    assert all(getattr(spec, key) == value for key, value in chosen["changes"].items())
    assert {"the job as given", "window_size 6, answer full"} <= {o["setting"] for o in tried}
    # A stride beyond its window is no job, and no reason to stop.
    assert "must be smaller" in found["impossible"]["strategy sliding, stride 30"]
    for word in ("frontier", "chosen", found["chosen"], "not possible: strategy sliding"):
        assert word in text
    assert max(map(len, text.splitlines())) <= 100


def test_the_cheapest_within_an_error_of_the_best_is_chosen(
    rows: list[Row], source: Path, judged: Path, tmp_path: Path
) -> None:
    grid = tmp_path / "grid.toml"
    grid.write_text('[[try]]\nwindow_size = 12\nmerge_passes = "forward,reverse"\n')
    with serving(judge(rows)) as server:
        flags = ("--qrels", judged, "--grid", grid, "--base-url", server.url)
        (tmp_path / "job.toml").write_text("window_size = 12\nmax_fallback = 0.2\n")
        found = asked("tune", source, *flags, "--job", "job.toml", "--json").json
    # A judge without noise says the same in every order.
    dear = next(one for one in found["tried"] if one["setting"] != "the job as given")
    assert (dear["is_noise"], dear["on_frontier"]) == (False, False) or dear["is_noise"]
    assert found["chosen"] == "the job as given"
    spec = load_spec(Path("tuned.toml"), {})
    assert (spec.window_size, spec.max_fallback) == (12, 0.2)


def test_a_budget_is_kept_and_more_of_it_goes_on(
    rows: list[Row], source: Path, judged: Path, grid: Path
) -> None:
    with serving(judge(rows)) as server:
        flags = ("--qrels", judged, "--grid", grid, "--base-url", server.url, "--json")
        nothing = batchrank("tune", source, *flags, "--budget", "5")
        assert nothing.code == 75
        assert "more calls than --budget allows: give --budget more" in nothing.err
        spent = len(windows(server))
        assert 0 < spent <= 5
        some = asked("tune", source, *flags, "--budget", "120").json
        # Where it is spent, windows that still wait for a slot are sent home: it may be a few less.
        assert 100 < some["calls"] <= 120
        spent += some["calls"]
        assert len(windows(server)) == spent
        assert some["unreached"]
        assert some["tried"][0]["setting"] == "the job as given"
        everything = asked("tune", source, *flags).json
        assert everything["unreached"] == []
        assert everything["calls"] == len(windows(server)) - spent
        assert len(windows(server)) == len(set(windows(server)))


def test_killed_halfway_it_goes_on_and_asks_nothing_twice(
    shared_data: Path, tmp_path: Path
) -> None:
    folder = shared_data / "dl19"
    source = written(tmp_path / "dl19.jsonl", dl19(folder)[:20])
    judged = folder / "qrels.txt"
    grid = tmp_path / "grid.toml"
    grid.write_text("[[try]]\ndepth = [40, 60]\n[[try]]\nmax_doc_tokens = 60\n")
    knowledge = read_knowledge(gains=judged, inputs=[source])
    config = JudgeConfig(kind="vllm", noise=0.8, bias="first", bias_strength=0.5)
    flags = ("--qrels", judged, "--grid", grid, "--concurrency", 4)
    with serving(JudgeServer(config, knowledge)) as server:
        killed = started("tune", source, *flags, "--base-url", server.url, cwd=tmp_path)
        until(lambda: len(windows(server)) > 150)
        killed.kill()
        killed.communicate()
        until(lambda: not server.stats()["in_flight"])
        lost = len(windows(server)) - committed(tmp_path / "batchrank-trials.sqlite")
        assert not Path("tuned.toml").exists()
        found = asked("tune", source, *flags, "--base-url", server.url, "--json").json
        paid = windows(server)
        # Only what was sent and not yet committed when it was killed may have been asked again.
        assert len(paid) - len(set(paid)) <= lost < 100
        assert found["queries"] == 20
        assert len(found["tried"]) == 4
        assert found["first_stage"] < max(one["ndcg"] for one in found["tried"])
        other = tmp_path / "calm.sqlite"
        calm = asked(
            "tune", source, *flags, "--base-url", server.url, "--json", "--store", other
        ).json
        assert {**calm, "calls": 0} == {**found, "calls": 0}
        result = asked("run", source, "--job", "tuned.toml", "--json").json
    assert result["exit_code"] == 0


def test_a_signal_ends_it_in_good_order(rows: list[Row], source: Path, judged: Path) -> None:
    with serving(judge(rows)) as server:
        flags = ("--qrels", judged, "--base-url", server.url)
        stopped = started("tune", source, *flags, cwd=source.parent)
        until(lambda: windows(server))
        stopped.send_signal(signal.SIGTERM)
        _, said = stopped.communicate(timeout=PATIENCE)
        assert stopped.returncode == 75, said
        assert "SIGTERM received; the same command goes on where this one stopped" in said
        sent = len(windows(server))
        # All that was sent was waited for and kept.
        assert committed(source.with_name("batchrank-trials.sqlite")) == sent


def test_what_no_gate_lets_pass_is_not_chosen(
    rows: list[Row], source: Path, judged: Path, tmp_path: Path
) -> None:
    grid = tmp_path / "grid.toml"
    grid.write_text('[[try]]\nanswer = "full"\n')
    with serving(judge(rows, constraints=frozenset(), malformed_rate=0.5)) as server:
        flags = ("--qrels", judged, "--grid", grid, "--base-url", server.url)
        result = batchrank("tune", source, *flags)
    assert result.code == 3
    assert "no setting passes the gates" in result.err
    assert not Path("tuned.toml").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("window_size = 5", "expected [[try]] tables"),
        ("[[try]]\nconcurrency = 5", "'concurrency' can't be varied"),
        ("[[try", "can't be read"),
        ('[[try]]\nstrategy = ["segmentd", "single"]', "must be 'segmented', "),
        ("[[try]]\nwindow_size = [10, 1]", "window_size must be at least 2, got 1"),
        ("[[try]]\nwindow_size = []", "window_size has no value to try"),
        ('[[try]]\npasses = "forwrd"', "'forwrd' is no pass"),
        ('[[try]]\nmerge_passes = "adaptive:x"', "is no merge pass"),
        ('[[try]]\ntemplate = ["direct-en", "none.toml"]', "template 'none.toml' is neither"),
        ('[[try]]\nstage = [[{ depth = 9 }, { template = "no" }]]', "template 'no' is neither"),
        ('[[try]]\nstage = [[{ answer = "yes" }]]', "stage 1 answer must be"),
        ('[[try]]\npreset = "slow"', "preset must be"),
    ],
)
def test_a_grid_that_is_none(
    source: Path, judged: Path, tmp_path: Path, text: str, said: str
) -> None:
    grid = tmp_path / "grid.toml"
    grid.write_text(text)
    flags = ("--qrels", judged, "--grid", grid, "--base-url", "http://127.0.0.1:9")
    result = batchrank("tune", source, *flags)
    assert (result.code, said in result.err) == (2, True), result.err
    assert not Path("batchrank-trials.sqlite").exists()


def test_what_is_read_is_not_written_over(source: Path, judged: Path) -> None:
    for output in (source, judged):
        result = batchrank("tune", source, "--qrels", judged, "-o", output)
        assert (result.code, "choose another" in result.err) == (2, True), result.err


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    rows = requests(1, 4)
    source = written(tmp_path / "one.jsonl", rows)
    judged = qrels(tmp_path / "judged", {"q1": {"q1-d1": 1}})
    (tmp_path / "grid.toml").write_text("[[try]]\ndepth = 3\n")
    with serving(judge(rows)) as server:
        gone = server.url
    flags = ("--qrels", judged, "--grid", "grid.toml", "--base-url", gone)
    result = batchrank("tune", source, *flags)
    assert result.code == 4, result.err
    # At once: the second setting is not begun.
    assert "2 of 2" not in result.err
    assert not Path("tuned.toml").exists()


LEAVING = [("reset", {"error_rate": 1.0}), ("gone", {}), ("key", {"api_key": "another"})]


@pytest.mark.parametrize("command", ["tune", "diagnose"])
@pytest.mark.parametrize(("how", "settings"), LEAVING)
def test_a_server_that_can_not_serve_any_more_is_never_a_setting_that_is_not_possible(
    rows: list[Row],
    source: Path,
    judged: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    how: str,
    settings: dict[str, Any],
) -> None:
    # Of the pauses before a call of the preflight is tried again.
    monkeypatch.setattr("batchrank.serving.backoff.delay_of", lambda *_: 0.0)
    flags = ["--qrels", judged, "--sample", 2]
    if command == "tune":
        Path("grid.toml").write_text('[[try]]\nwindow_size = 12\nanswer = ["full", "logprobs"]\n')
        flags += ["--grid", "grid.toml"]
    servers = ExitStack()
    first = servers.enter_context(serving(judge(rows)))
    run, number = Runner.run, 0

    async def run_then_leave(runner: Runner) -> Report:
        nonlocal number
        number += 1
        if number == 2:
            port = int(first.url.rpartition(":")[2])
            await asyncio.to_thread(servers.close)
            if how != "gone":
                other = judge(rows, port=port, **settings)
                await asyncio.to_thread(servers.enter_context, serving(other))
        return await run(runner)

    monkeypatch.setattr(Runner, "run", run_then_leave)
    with servers:
        result = batchrank(command, source, *flags, "--base-url", first.url)
        assert (result.code, result.out) == (4, b""), result.err
        assert "the same command goes on where this one stopped" in result.err
        assert number == 2
        assert not Path("tuned.toml").exists()
        # What is in the store needs no server; the first that does finds none it can use.
        again = batchrank(command, source, *flags, "--base-url", first.url)
        assert (again.code, again.out) == (4, b""), again.err
        assert not Path("tuned.toml").exists()


def test_what_a_server_can_not_do_is_named_and_the_rest_is_tried(
    rows: list[Row], source: Path, judged: Path
) -> None:
    grid = """
    [[try]]
    answer = "logprobs"
    [[try]]
    window_size = 12
    stage = [[{ strategy = "pointwise", answer = "rerank" }, { depth = 10 }]]
    [[try]]
    stage = [[{ strategy = "pointwise", answer = "rerank" }, { depth = 10 }]]
    [[try]]
    max_doc_tokens = 20000
    """
    Path("grid.toml").write_text(grid)
    Path("job.toml").write_text('fit = "refuse"\nwindow_size = 6\n')
    flags = ("--qrels", judged, "--grid", "grid.toml", "--sample", 2, "--job", "job.toml", "--json")
    with serving(judge(rows, kind="ollama", alternatives=1)) as server:
        found = asked("tune", source, *flags, "--base-url", f"{server.url}/v1").json
    assert [one["setting"] for one in found["tried"]] == ["the job as given"]
    reasons = list(found["impossible"].values())
    assert len(reasons) == 4
    told = (
        "the [[stage]] tables",
        "fewer than two log-",
        "gives no relevances",
        "holds 4096",
    )
    for said in told:
        assert any(said in reason for reason in reasons), (said, reasons)


def test_no_two_rows_of_the_table_read_alike(rows: list[Row], source: Path, judged: Path) -> None:
    Path("grid.toml").write_text(
        '[[try]]\nstrategy = ["segmented", "topdown"]\nmax_doc_tokens = [60, 120]\n'
        'window_size = [10, 12]\ntemplate = "direct-en"\n'
    )
    with serving(judge(rows)) as server:
        flags = ("--qrels", judged, "--sample", 2, "--grid", "grid.toml", "--base-url", server.url)
        names = [one["setting"] for one in asked("tune", source, *flags, "--json").json["tried"]]
        lines = asked("tune", source, *flags).out.decode().splitlines()
    start = next(place for place, line in enumerate(lines) if line.lstrip().startswith("setting"))
    column = slice(lines[start].index("setting"), lines[start].index(" nDCG@10"))
    told: list[str] = []
    for line in lines[start + 1 : lines.index("", start)]:
        if line[0] != " ":
            told.append("")
        told[-1] += f"{line[column]} "
    assert len(told) == len(set(told)) == len(names) == 9
    for name, text in zip(names, told, strict=True):
        words = iter(text.split())
        assert all(word in words for word in name.split()), (name, text)


def test_of_a_cascade_the_last_stage_is_varied(
    rows: list[Row], source: Path, judged: Path, tmp_path: Path
) -> None:
    job = tmp_path / "job.toml"
    job.write_text('[[stage]]\nstrategy = "pointwise"\nanswer = "rerank"\n[[stage]]\ndepth = 20\n')
    with serving(judge(rows, noise=0.2)) as server:
        flags = ("--qrels", judged, "--sample", 3, "--job", job, "--base-url", server.url)
        found = asked("tune", source, *flags, "--json").json
    names = {one["setting"] for one in found["tried"]}
    assert {
        "the job as given",
        "depth 40 in the last stage",
        "answer logprobs in the last stage",
        "max_doc_tokens 60",
        "strategy topdown in the last stage",
        "preset thorough, without the job's stage",
    } <= names
    spec = load_spec(Path("tuned.toml"), {})
    chosen = next(one for one in found["tried"] if one["setting"] == found["chosen"])
    if "preset" in chosen["changes"]:
        assert spec.stage is None
    else:
        first, last = spec.stages
        assert (first.strategy, first.answer) == ("pointwise", "rerank")
        of_stage = {
            key: last.model_dump().get(key, value) for key, value in chosen["changes"].items()
        }
        assert of_stage == chosen["changes"]


def committed(store: Path) -> int:
    """Answers that a store holds."""
    connection = sqlite3.connect(store)
    ((count,),) = connection.execute("SELECT count(*) FROM answers")
    connection.close()
    return int(count)
