"""What went wrong is said with its reason: failed lines, errors of servers, stops, lost stores."""

from __future__ import annotations

from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from scripts.judge import JudgeServer
from tests.cli.conftest import Shell
from tests.cli.running import Row, batchrank, judge, requests, rows_of, serving, written
from tests.cli.running import windows as asked
from tests.waiting import until


def test_the_summary_says_why_lines_failed(source: Path, shell: Shell, rows: list[Row]) -> None:
    without_qid = {"query": "what", "documents": ["a", "b"]}
    written(source, [*rows, b"{torn", without_qid, b"{torn too", without_qid, b"{torn"])
    ended = shell.run(source)
    assert ended.code == 3
    assert "failed, json: 3, for example line 4: The line is not JSON" in ended.err
    assert "failed, qid: 2, for example line 5: The query has no qid" in ended.err
    assert f"`batchrank check {source}`" in ended.err
    found = shell.look("status", "--json").json["summary"]["failures"]
    assert [(cause["reason"], cause["count"]) for cause in found] == [("json", 3), ("qid", 2)]


def test_what_a_server_says_in_place_of_an_answer_is_shown(tmp_path: Path) -> None:
    rows = requests(queries=2, candidates=12)
    for candidate in rows[1]["candidates"]:
        candidate["doc"]["text"] *= 20
    source = written(tmp_path / "in.jsonl", rows)
    # It keeps its context to itself, and has too little for the long documents.
    with serving(judge(rows, kind="openai", context=1000)) as server:
        shell = Shell(tmp_path, server.url)
        ended = shell.run(source, "--max-doc-tokens", "800")
    assert ended.code == 3, ended.err
    looked = shell.look("status").out.decode()
    assert "the same command asks windows without an answer again" in looked
    assert "--retry-fallbacks" not in looked
    assert "windows without an answer, for example: The server answered 400: " in ended.err
    assert "context" in ended.err
    # What it says of a rejected run is about windows that really were bad.
    examples = [line for line in ended.err.splitlines() if "for example query" in line]
    assert examples
    assert all(": error (no answer): " in line and "context" in line for line in examples)


def _unusable(rows: list[Row]) -> JudgeServer:
    spoiled: dict[str, Any] = {"malformed_rate": 1.0, "malformed": ("prose",)}
    return judge(rows, constraints=frozenset(), sound_trials=True, **spoiled)


def test_an_early_stop_with_all_lines_done_keeps_its_result_aside(tmp_path: Path) -> None:
    rows = requests(queries=17, candidates=12)  # 51 windows
    source = written(tmp_path / "in.jsonl", rows)
    with serving(_unusable(rows)) as server:
        ended = Shell(tmp_path, server.url).run(source, "--concurrency", "64")
    assert ended.code == 3, ended.err
    assert not (tmp_path / "in.ranked.jsonl").exists()
    aside = tmp_path / "in.ranked.jsonl.rejected"
    assert f"kept aside in {aside}" in ended.err
    assert len(rows_of(aside)) == 17


def test_an_early_stop_says_where_to_look(tmp_path: Path) -> None:
    rows = requests(queries=60, candidates=12)
    source = written(tmp_path / "in.jsonl", rows)
    with serving(_unusable(rows)) as server:
        shell = Shell(tmp_path, server.url)
        ended = shell.run(source, "--concurrency", "2", "--no-re-ask")
    assert ended.code == 3, ended.err
    assert "nothing is written; see `batchrank inspect QID` or `batchrank export`" in ended.err
    assert not list(tmp_path.glob("*.rejected"))
    found = rows_of(shell.look("export").out)
    assert 0 < len(found) < 60
    assert shell.look("inspect", found[0]["qid"]).code == 0


def test_a_store_that_is_deleted_in_mid_run_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("batchrank.running.ticking._TICK_SECONDS", 0.01)
    rows = requests(queries=200, candidates=12)
    source = written(tmp_path / "in.jsonl", rows)
    with serving(judge(rows, call_seconds=0.05)) as server:
        shell = Shell(tmp_path, server.url)

        def delete() -> None:
            until(lambda: asked(server))
            shell.store.unlink()

        thread = Thread(target=delete)
        thread.start()
        ended = shell.run(source, "--concurrency", "2")
        thread.join()
    assert ended.code == 1, ended.err
    last = ended.err.splitlines()[-1]
    assert "was deleted or replaced while it was in use" in last
    assert "run the same command again" in last


def test_the_summary_says_which_store_it_was(source: Path, shell: Shell) -> None:
    assert f"store: {shell.store}, created\n" in shell.run(source).err
    assert f"store: {shell.store}\n" in shell.run(source).err


def test_names_that_are_not_utf8_work(tmp_path: Path, server: JudgeServer, rows: list[Row]) -> None:
    folder = tmp_path / "caf\udce9"
    folder.mkdir()
    source = written(folder / "in\udcff.jsonl", rows)
    output = folder / "out\udcff.jsonl"
    store = folder / "s\udcff.sqlite"
    where = ("--store", store)
    ended = batchrank("run", source, "-o", output, *where, "--base-url", server.url, "--json")
    assert ended.code == 0, ended.err
    assert ended.json["output"].endswith("caf\\xe9/out\\xff.jsonl")
    assert len(rows_of(output)) == 3
    assert "caf\\xe9/in\\xff.jsonl" in batchrank("status", *where).out.decode()
    assert batchrank("status", "--json", *where).json["input"].endswith("in\\xff.jsonl")
    copy = folder / "copy\udcff.sqlite"
    assert batchrank("backup", copy, *where).code == 0
    again = folder / "again\udcff.jsonl"
    assert batchrank("export", "-o", again, "--store", copy).code == 0
    assert again.read_bytes() == output.read_bytes()
    assert batchrank("check", source).code == 0
