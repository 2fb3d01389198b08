"""`batchrank report`: what it refuses, where it writes, how large it grows."""

from __future__ import annotations

import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from batchrank.measuring.runs import read_run
from batchrank.reporting import Wanted, write_report
from tests.cli.conftest import Shell
from tests.cli.running import Row, batchrank, judge, serving, written
from tests.reporting.conftest import Nights


def test_a_page_on_standard_output(nights: Nights) -> None:
    ended = batchrank("report", nights.store, "-o", "-")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(b"<!doctype html>")
    assert ended.out.rstrip().endswith(b"</html>")


def test_a_page_is_replaced_and_the_store_is_left_alone(nights: Nights, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text("yesterday")
    assert batchrank("report", nights.store, "-o", page).code == 0
    assert page.read_text().startswith("<!doctype html>")
    assert list(tmp_path.iterdir()) == [page]
    ended = batchrank("report", nights.store, "-o", nights.store)
    assert (ended.code, "is the store: choose another" in ended.err) == (2, True)
    ended = batchrank("report", nights.store, "-o", nights.qrels, "--qrels", nights.qrels)
    assert (ended.code, "is the judgements: choose another" in ended.err) == (2, True)


def test_what_is_not_there_is_said(nights: Nights, tmp_path: Path) -> None:
    page, strange = tmp_path / "report.html", tmp_path / "strange.qrels"
    strange.write_text("other 0 d1 1\n")
    run = tmp_path / "strange.trec"
    run.write_text("other Q0 d1 1 1.0 tag\n")
    unpriced = tmp_path / "job.toml"
    unpriced.write_text("depth = 20\n")
    for arguments, told in {
        (tmp_path / "none.sqlite",): "there is no store at",
        (nights.store, "--run", 9): "holds no run 9",
        (nights.store, "--qrels", strange): "ranks no query of the qrels ('other', …)",
        (nights.store, "--against", run): "have no query in common",
        (nights.store, "--against", f"{nights.store}#9"): "holds no run 9",
        (nights.store, "--job", unpriced): "has no [cost] section",
    }.items():
        ended = batchrank("report", *arguments, "-o", page)
        assert (ended.code, len(ended.err.splitlines())) == (2, 1), ended.err
        assert told in ended.err
    assert not page.exists()


def test_a_missing_package_is_named(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("page", "charts", "drawing"):
        monkeypatch.delitem(sys.modules, f"batchrank.reporting.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ended = batchrank("report", nights.store, "-o", "-")
    assert (ended.code, ended.out) == (2, b"")
    assert "pip install 'batchrank[report]'" in ended.err


def test_a_run_beside_an_output_of_its_own_is_the_same(nights: Nights) -> None:
    output = nights.folder / "log.ranked.jsonl"
    assert len(read_run(output).scores) == 30
    ended = batchrank("report", nights.store, "-o", "-", "--against", output)
    assert ended.code == 0, ended.err
    text = ended.out.decode()
    since = text[text.index('id="against"') :]
    assert "100.0%" in since
    assert "30 of 30 queries" in since
    assert "changed most since the other run" not in text


def test_large_runs_are_compared_by_an_even_sample(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("batchrank.reporting.against._MOST", 10)
    told: list[int] = []
    for judged in ((), ("--qrels", nights.qrels)):
        ended = batchrank("report", nights.store, "-o", "-", "--against", nights.store, *judged)
        assert ended.code == 0, ended.err
        text = ended.out.decode()
        assert "Of an even sample of the queries, and all judged ones." in text
        told += map(int, re.findall(r"(\d+) of \1 queries", text[text.index('id="against"') :]))
    assert 1 <= told[0] < 30
    assert 20 <= told[1] < 30


async def test_a_page_has_a_limit(
    nights: Nights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, small = tmp_path / "page.html", tmp_path / "small.html"
    wanted = Wanted(nights.store, qrels=nights.qrels)
    whole = await write_report(wanted, str(page))
    assert whole == page.stat().st_size < 2_000_000
    monkeypatch.setattr("batchrank.reporting.writing._LARGEST", whole - 1)
    assert await write_report(wanted, str(small)) < whole
    told = [
        len(re.findall('<section class="window"', path.read_text()))
        + sum(map(int, re.findall(r"(\d+) more windows?:", path.read_text())))
        for path in (page, small)
    ]
    assert told[0] == told[1] > 0


def test_a_run_that_was_killed_is_told_of(nights: Nights, tmp_path: Path) -> None:
    store, price = tmp_path / "store.sqlite", tmp_path / "price.toml"
    price.write_text("[cost]\ngpu_hour = 2.5\n")
    assert batchrank("backup", store, "--store", nights.store).code == 0
    with closing(sqlite3.connect(store)) as opened:
        opened.execute("UPDATE runs SET ended = NULL, exit = NULL, summary = NULL")
        opened.commit()
    ended = batchrank(
        "report",
        store,
        "-o",
        "-",
        "--qrels",
        nights.qrels,
        "--against",
        nights.store,
        "--job",
        price,
    )
    assert ended.code == 0, ended.err
    text = ended.out.decode()
    assert "has not ended, or was killed" in text
    assert "How slots were used over time is not known" in text
    assert "Cost" not in text


def test_how_much_of_the_input_there_is_is_told_as_far_as_it_is_known(
    source: Path, shell: Shell
) -> None:
    def told() -> tuple[str, str]:
        page = batchrank("report", shell.store, "-o", "-", "--run", 1)
        assert page.code == 0, page.err
        return shell.look("status", "--run", 1).out.decode(), page.out.decode()

    def change(*statements: str) -> None:
        with closing(sqlite3.connect(shell.store)) as store, store:
            for statement in statements:
                store.execute(statement)

    assert shell.run(source).code == 0
    change(
        "UPDATE runs SET exit = 75, night = 75, lines = NULL",
        "DELETE FROM lines WHERE position = 2",
        "UPDATE lines SET ranking = x'00' WHERE position = 1",
    )
    status, page = told()
    assert "1 of at least 2 queries: 1 ok; the input was not read to its end" in status
    assert "of at least 2<" in page
    assert "The input was not read to its end: figures are of 1 query that" in page
    change("UPDATE runs SET lines = 2")
    status, page = told()
    assert "1 of 2 queries: 1 ok; 1 left" in status
    assert ">of 2<" in page
    change("UPDATE runs SET lines = NULL")
    assert shell.run(source).code == 0
    status, page = told()
    assert "what it ranked is in run 2, which went on from it (--run 2)" in status
    assert "What this run ranked is in run 2" in page
    assert "of 0<" not in page
    against = batchrank("report", shell.store, "-o", "-", "--against", f"{shell.store}#1")
    assert (against.code, "holds no ranking of its own" in against.err) == (2, True)

    table = shell.look("status", "--runs").out.decode().splitlines()
    assert [line.split()[0] for line in table] == ["run", "2", "1"]
    assert table[2].endswith("went on in run 2")
    assert table[1].endswith(" 3")
    two, one = shell.look("status", "--runs", "--json").json
    assert (one["run"], one["taken_over_by"], one["exit"]) == (1, 2, 75)
    assert (two["run"], two["done"], two["lines"], two["is_read"]) == (2, 3, 3, True)
    both = shell.look("status", "--runs", "--run", "1")
    assert (both.code, "leave --run out" in both.err) == (2, True)
    absent = shell.look("status", "--run", "9").err
    assert "holds no run 9; see `batchrank status --runs --store " in absent
    assert str(shell.store) in absent


def test_what_a_fresh_run_asked_anew_is_not_known_of_the_run_before(
    tmp_path: Path, rows: list[Row]
) -> None:
    source, store = written(tmp_path / "in.jsonl", rows), tmp_path / "store.sqlite"
    grades = "".join(f"{row['query']['qid']} 0 {row['candidates'][0]['docid']} 1\n" for row in rows)
    (tmp_path / "qrels").write_text(grades)
    prose: dict[str, Any] = {"malformed_rate": 0.4, "malformed": ("prose",), "sound_trials": True}
    with serving(judge(rows, constraints=frozenset(), **prose)) as server:
        command = ("run", source, "--store", store, "--base-url", server.url, "--window-size", "6")
        assert batchrank(*command, "--max-fallback", "1", "--no-re-ask").code == 0
        before = batchrank("status", "--store", store).out.decode()
        assert "no ranking, fallback" in before
        assert batchrank(*command, "--max-fallback", "1", "--no-re-ask", "--fresh").code == 0
    status = batchrank("status", "--store", store, "--run", 1).out.decode()
    assert "no ranking, " not in status
    page = batchrank("report", store, "-o", "-", "--run", 1).out.decode()
    assert "9 answers behind these rankings were asked anew" in page
    assert "error (no answer)" not in page
    assert "not known any more" in page
    ended = batchrank("eval", f"{store}#1", "--qrels", tmp_path / "qrels")
    assert "9 answers behind the ranking, asked anew" in ended.out.decode()
    for run, gone in ((1, 9), (2, 0)):
        found = batchrank("eval", f"{store}#{run}", "--qrels", tmp_path / "qrels", "--json").json
        assert found["spending"]["gone"] == gone


def test_a_run_without_a_ranking_is_told_of(tmp_path: Path, shell: Shell) -> None:
    lines = [b"{torn", b'{"qid": "q1", "query": "one", "candidates": ["only"]}']
    source = written(tmp_path / "in.jsonl", lines)
    assert shell.run(source, "--max-failed", "1").code == 0
    ended = batchrank("report", shell.store, "-o", "-")
    assert ended.code == 0, ended.err
    text = ended.out.decode()
    for told in ("No query was ranked by a model.", "No call was paid for", "1 unranked", "{torn"):
        assert told in text
    assert "<svg" not in text
