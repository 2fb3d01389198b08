"""A run in a store is measured with what it took, and with what it cost."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from batchrank.formats.wording import money
from batchrank.measuring.cost import worth
from batchrank.measuring.nights import Spending, went_on_from
from batchrank.metrics.significance import Difference
from batchrank.spec.jobspec import Cost
from batchrank.store.records import Run
from batchrank.store.spending import Calls
from scripts.judge import JudgeServer
from tests.cli.running import batchrank, gain, judge, requests, serving, windows, written
from tests.evaluation.files import qrels

ROWS = requests(queries=3, candidates=12)
GRADES = {
    row["query"]["qid"]: {
        candidate["docid"]: round(3 * gain(row["query"]["qid"], candidate["docid"]))
        for candidate in row["candidates"]
    }
    for row in ROWS
}


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    return qrels(tmp_path / "qrels", GRADES)


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with serving(judge(ROWS)) as running:
        yield running


@pytest.fixture
def store(tmp_path: Path, server: JudgeServer) -> Path:
    """Two runs of windows of six: the first two queries, then all three."""
    path = tmp_path / "store.sqlite"
    for count in (2, 3):
        source = written(tmp_path / f"in{count}.jsonl", ROWS[:count])
        flags = ("--store", path, "--base-url", server.url, "--window-size", "6")
        result = batchrank("run", source, *flags)
        assert result.code == 0, result.err
    return path


def test_a_store_tells_what_its_run_took(store: Path, judged: Path, server: JudgeServer) -> None:
    result = batchrank("eval", store, "--qrels", judged, "--json")
    assert result.code == 0, result.err
    found = result.json
    assert found["run"] == f"{store}#2"
    assert found["rows"] == {"ok": 3}
    assert found["missing"] == []
    assert found["measures"][0]["after"] > found["measures"][0]["before"]
    spending = found["spending"]
    asked = len(windows(server))
    # Three windows a query: two segments and their merge.
    assert asked == 9
    assert (spending["paid"]["number"], spending["kept"]["number"]) == (3, 6)
    assert spending["paid"]["usage"]["prompt_tokens"] > 0
    assert spending["seconds"] > 0
    assert (spending["interrupted"], spending["killed"]) == (0, 0)


def test_another_run_of_a_store_is_named_by_its_number(store: Path, judged: Path) -> None:
    for arguments in ((store, "--run", "1"), (f"{store}#1",)):
        found = batchrank("eval", *arguments, "--qrels", judged, "--json").json
        assert found["run"] == f"{store}#1"
        assert found["missing"] == ["q3"]
        assert found["spending"]["paid"]["number"] == 6
    result = batchrank("eval", f"{store}#1", "--qrels", judged, "--run", "1")
    assert (result.code, "names a run already" in result.err) == (2, True)
    assert batchrank("eval", f"{store}#7", "--qrels", judged).code == 2


def test_two_runs_of_one_store_are_compared(store: Path) -> None:
    found = batchrank("compare", f"{store}#1", f"{store}#2", "--json").json
    (pair,) = found["likeness"]
    assert (pair["overlap"], pair["tau"], pair["rbo"]) == (1, 1, pytest.approx(1))


def test_the_output_and_the_store_measure_alike(store: Path, judged: Path) -> None:
    from_store = batchrank("eval", store, "--qrels", judged, "--json").json
    output = store.with_name("in3.ranked.jsonl")
    from_output = batchrank("eval", output, "--qrels", judged, "--json").json
    for key in ("measures", "per_query", "rows", "most_helped"):
        assert from_output[key] == from_store[key]


def test_a_job_spec_prices_the_night(store: Path, judged: Path, tmp_path: Path) -> None:
    spec = tmp_path / "job.toml"
    spec.write_text("[cost]\ngpu_hour = 3600\ngpus = 2\n")
    arguments = ("eval", store, "--qrels", judged, "--job", spec, "--measure", "P@10")
    found = batchrank(*arguments, "--json").json
    assert [entry["measure"] for entry in found["measures"]] == ["P@10", "nDCG@10"]
    seconds = found["spending"]["seconds"]
    assert found["worth"]["night"] == pytest.approx(2 * seconds)
    assert found["worth"]["per_1000_queries"] == pytest.approx(2 * seconds / 3 * 1000)
    change = found["measures"][1]["change"]
    assert found["worth"]["per_point"] == pytest.approx(2 * seconds / (change / 0.01))
    told = batchrank(*arguments).out.decode()
    assert "Is it worth it?" in told
    assert "what was found in the store cost earlier runs" in told
    assert max(map(len, told.splitlines())) <= 100


def test_the_times_that_the_runs_of_a_night_told_are_summed(tmp_path: Path, judged: Path) -> None:
    store, source = tmp_path / "night.sqlite", written(tmp_path / "in.jsonl", ROWS)
    night = ("run", source, "--store", store, "--base-url")
    with serving(judge(ROWS)) as server:
        url = server.url
        assert batchrank(*night, url, "--limit", 1).code == 0
    assert batchrank(*night, url).code == 4
    with serving(judge(ROWS, port=int(url.rpartition(":")[2]))):
        assert batchrank(*night, url).code == 0
    runs = sqlite3.connect(store)
    rows = runs.execute("SELECT exit, json_extract(summary, '$.seconds') FROM runs ORDER BY id")
    (_, told), *rest = rows.fetchall()
    runs.close()
    assert [code for code, _ in rest] == [4, 0]
    assert told > 0
    spending = batchrank("eval", store, "--qrels", judged, "--json").json["spending"]
    assert spending["seconds"] == pytest.approx(sum(seconds for _, seconds in rest))
    assert (spending["interrupted"], spending["killed"]) == (1, 0)


def test_a_night_goes_back_to_the_run_before_that_came_to_a_result() -> None:
    codes = (0, 75, None, 1, 4, 2, 75, 0, 3, 75, 3)
    runs = [
        Run(number, number % 2, {}, "in", "out", 0.0, None, code, None, night=code)
        for number, code in ((2 * place, code) for place, code in enumerate(codes))
    ]
    others = [replace(run, id=run.id + 1, job=1) for run in runs]
    every = sorted([*runs, *others], key=lambda run: -run.id)
    found = {run.id // 2: [one.id // 2 for one in went_on_from(run, every, run.id)] for run in runs}
    assert found[7] == [7, 6, 5, 4, 3, 2, 1]
    assert (found[8], found[10], found[0], found[2]) == ([8], [10, 9], [0], [2, 1])
    # From the first of those that a run repeats on, and what that one went on from.
    assert [one.id for one in went_on_from(runs[10], every, 16)] == [20, 18, 16]
    assert [one.id for one in went_on_from(runs[8], every, 14)] == [16, 14, 12, 10, 8, 6, 4, 2]
    # What was dropped by --fresh has led to nothing.
    again = replace(runs[7], fresh_since=8)
    assert [one.id for one in went_on_from(again, every, 14)] == [14, 12, 10, 8]


@pytest.mark.parametrize("step", [1, 2, 75, None])
def test_a_run_whose_night_did_not_end_belongs_to_the_next(step: int | None) -> None:
    ranked = Run(1, 1, {}, "in", "out", 0.0, 1.0, 0, None, night=step)
    again = Run(2, 1, {}, "in", "out", 2.0, 3.0, 0, None, night=0)
    # With failed queries that were tried again it repeats none.
    assert went_on_from(again, [again, ranked], 2) == [again, ranked]


@pytest.mark.parametrize("limits", [(), ("--max-fallback", 0, "--depth", 4)], ids=["good", "bad"])
def test_the_same_command_again_tells_what_the_night_took(
    tmp_path: Path, judged: Path, limits: tuple[object, ...]
) -> None:
    store, source = tmp_path / "night.sqlite", written(tmp_path / "in.jsonl", ROWS)
    prose = {"malformed_rate": 1.0, "malformed": ("prose",), "sound_trials": True}
    settings: dict[str, Any] = {"constraints": frozenset(), **prose} if limits else {}
    with serving(judge(ROWS, **settings)) as server:
        command = ("run", source, "--store", store, "--base-url", server.url, *limits)
        first, second = (batchrank(*command).code for _ in range(2))
    assert first == second == (3 if limits else 0)
    one, two = (
        batchrank("eval", f"{store}#{number}", "--qrels", judged, "--json").json["spending"]
        for number in (1, 2)
    )
    assert two["paid"] == one["paid"]
    assert one["paid"]["number"] > 0
    assert two["seconds"] > one["seconds"]
    assert (two["interrupted"], two["repeated"]) == (0, 1)
    page = tmp_path / "report.html"
    assert batchrank("report", store, "-o", page).code == 0
    assert "1 run before it that led to this ranking included" in page.read_text()
    assert "No call was paid for" not in page.read_text()
    # A day later it is another night, which paid for nothing, at no pace.
    with closing(sqlite3.connect(store)) as kept, kept:
        kept.execute("UPDATE runs SET started = started - 86400 WHERE id = 1")
    assert batchrank("report", store, "-o", page).code == 0
    assert "No call was paid for" in page.read_text()
    assert "queries an hour" not in page.read_text()


@pytest.mark.parametrize("price", [0.0, 0.1, 2.5, 1234.5, 0.0512, 0.00345, 7.77e-7])
def test_a_price_shows_two_digits_however_small(price: float) -> None:
    shown = money(price)
    assert float(shown.replace(",", "")) == pytest.approx(price, rel=0.05)
    assert "e" not in shown
    assert len(shown.partition(".")[2]) >= 2


def test_small_prices_are_told_with_their_digits(store: Path, judged: Path, tmp_path: Path) -> None:
    spec = tmp_path / "job.toml"
    spec.write_text("[cost]\ngpu_hour = 0.5\n")
    told = batchrank("eval", store, "--qrels", judged, "--job", spec).out.decode()
    assert " 0.00 " not in told
    assert re.search(r"cost 0\.0+[1-9]\d? for 3 queries", told)


@pytest.mark.parametrize(
    ("change", "p", "told"),
    [
        (0.05, 0.001, "+0.0500 nDCG@10"),
        (0.05, 0.2, "Unclear"),
        (-0.01, 0.001, "No: -0.0100 nDCG@10"),
    ],
)
def test_the_verdict_follows_the_gain(change: float, p: float, told: str) -> None:
    spending = Spending(Calls(), Calls(), seconds=7200, interrupted=0, killed=0)
    gained = Difference(change, change - 0.02, change + 0.02, p, 5, 5, 5)
    found = worth(Cost(gpu_hour=2.5, gpus=2), spending, 4000, gained)
    assert (found.night, found.per_1000_queries) == (10, 2.5)
    assert found.per_point == (pytest.approx(2) if change > 0 else None)
    assert told in found.sentence
    assert "2.50 per 1,000 queries" in found.sentence
